package runtime

import (
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
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

// The tables of a program, which the compiler fills in and generated code holds.
type (
	ProgramData        = program.Program
	SegmentData        = program.Segment
	Elem               = program.Elem
	Types              = program.Types
	OptimizerKind      = program.OptimizerKind
	Axis               = program.Axis
	Group              = program.Group
	Model              = program.Model
	Experts            = program.Experts
	AttentionShape     = program.AttentionShape
	BatchLayout        = program.BatchLayout
	Inputs             = program.Inputs
	Dim                = program.Dim
	InitKind           = program.InitKind
	Init               = program.Init
	Param              = program.Param
	Place              = program.Place
	FirstWrite         = program.FirstWrite
	Ref                = program.Ref
	Stage              = program.Stage
	Chunk              = program.Chunk
	LayerRun           = program.LayerRun
	Bucket             = program.Bucket
	Piece              = program.Piece
	Arena              = program.Arena
	Region             = program.Region
	Plan               = program.Plan
	Precision          = program.Precision
	DecidedFrom        = program.DecidedFrom
	Predict            = program.Predict
	Settings           = program.Settings
	DataSettings       = program.DataSettings
	File               = program.File
	TrainSettings      = program.TrainSettings
	PrecisionSettings  = program.PrecisionSettings
	LossScaleSettings  = program.LossScaleSettings
	ExpertSettings     = program.ExpertSettings
	OptimizerSettings  = program.OptimizerSettings
	ScheduleSettings   = program.ScheduleSettings
	EvalSettings       = program.EvalSettings
	CheckpointSettings = program.CheckpointSettings
	Weights            = program.Weights
	Published          = program.Published
	Share              = program.Share
)

// The element types of tensors.
const (
	F32  = program.F32
	F64  = program.F64
	BF16 = program.BF16
	F16  = program.F16
)

// The optimizers.
const (
	AdamW = program.AdamW
	Adam  = program.Adam
	SGD   = program.SGD
)

// The initial distributions of parameters.
const (
	Zeros  = program.Zeros
	Ones   = program.Ones
	Normal = program.Normal
)

// Team is the launch that a run is part of, and Peers the connection between its processes.
type (
	Team  = launch.Team
	Peers = launch.Peers
)
