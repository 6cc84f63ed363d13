package runtime

// Segment is a run of blocks of one kind. A function that no stage runs is nil.
type Segment struct {
	Name     string
	Input    bool  // a block takes the output of the block before it
	Output   bool  // a block has an output
	Refs     []Ref // parameter runs that its functions read, in the order of Block.Params and Block.Grads
	Forward  func(*Rank, *Block)
	Backward func(*Rank, *Block)
	Weights  func(*Rank, *Block) // computes parameter gradients if Backward does not (split backward)
	Gradient bool                // a layer saves the gradient of its output for Weights

	FirstWrites []FirstWrite        // gradients that these two overwrite in the first micro-batch
	Logits      func(*Rank, *Block) // in the last segment

	RematForward, RematBackward func(*Rank, *Block) // for runs whose layers save less and recompute it in backward
}

// FirstWrite is a parameter's gradient that a layer writes in the step's first micro-batch and adds to in the others,
// so that it need not be zeroed before. It has Elems elements from element Offset of the run of Refs[Ref].
type FirstWrite struct{ Ref, Offset, Elems int }

// Ref names the parameter run of a class: of the block's own layer, or of the first layer of another segment.
type Ref struct{ Segment, Class int }

// Stage is the part of a program that differs from stage to stage.
type Stage struct {
	Schedule string // actions of a step: F0*3 (F0 B0)*5 B0*3 U, with W0 if backward is split
	Chunks   []Chunk
	Buckets  []Bucket
	Gather   int // bytes of a buffer for a block's gathered parameters; the communication region has two
	Scatter  int // bytes of a buffer for a block's gradients; two follow those for parameters
	Arena    Arena
	Inputs   Inputs
}

// Chunk is a run of the model's blocks on one stage. Micro-batch m has activation buffer m modulo Buffers from its
// forward pass to its backward pass, or to the second part of a split backward pass.
type Chunk struct {
	Index   int // in the model's order, over all stages
	Runs    []LayerRun
	Offset  int // byte offset of the first buffer in the activation region
	Size    int // bytes of a buffer
	Buffers int
}

// LayerRun is Count layers of a segment, from layer From. Each has Stride bytes of the chunk's buffer, from Offset: the
// block's input, if it has one, what it saves, and the gradient of its output if that is saved.
//
// If Remat is set, the layers run RematForward and RematBackward. If Split is set, too, the buffer holds only what the
// layers save, and their inputs are double-buffered in the stage's spare memory. If Every is set, the buffer holds only
// the input of each Every-th layer. What such a group of layers saves, and its other inputs, are in the spare memory,
// Inner bytes per layer, and are recomputed before the group's backward functions run. The second part of a split
// backward pass then runs at once.
type LayerRun struct {
	Segment, From, Count, Offset, Stride int

	Remat, Split bool
	Every, Inner int
}

// Block is the argument of a block's function: byte offsets in the rank's arena.
type Block struct {
	Micro, Layer int
	X, Out       int   // the block's input and output
	Slot         int   // values that forward saves for backward
	DY, DX       int   // gradients of the output and of the input
	Work, Logits int   // the workspace, and the destination of the last segment's Logits
	Params       []int // start of the run of each of the segment's Refs
	Grads        []int // start of the gradients of that run
}

// samples reports whether the program can generate text: it computes logits and reads tokens.
func (p *Program) samples() bool {
	return p.Segments[len(p.Segments)-1].Logits != nil && p.Stages[0].Inputs.Tokens > 0
}
