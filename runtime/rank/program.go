package rank

import "github.com/planc-dev/planc/runtime/program"

// The tables that a Program and a Segment embed.
type (
	ProgramData = program.Program
	SegmentData = program.Segment
)

// Program is a compiled training program: its tables, the functions of the model's blocks, and its devices. Generated
// code fills one in; Run and Main execute it. All ranks share it, and nothing writes to it after the start.
type Program struct {
	ProgramData
	Segments []Segment
	Devices  Devices // devices that the program is compiled for; nil: this CPU
}

// Segment is a run of blocks of one kind. A function that no stage runs is nil.
type Segment struct {
	SegmentData
	Forward  func(*Rank, *Block)
	Backward func(*Rank, *Block)
	Weights  func(*Rank, *Block) // computes parameter gradients if Backward does not (split backward)
	Logits   func(*Rank, *Block) // in the last segment

	RematForward, RematBackward func(*Rank, *Block) // for runs whose layers save less and recompute it in backward
}
