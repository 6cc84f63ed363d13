package runtime

// Segment is a run of blocks of one kind. A nil function is one that no stage runs.
type Segment struct {
	Name     string
	Input    bool  // a block takes what the block before it returned
	Output   bool  // and returns something
	Refs     []Ref // the runs of parameters that its functions read: Block.Params and Block.Grads follow them
	Forward  func(*Rank, *Block)
	Backward func(*Rank, *Block)
	Weights  func(*Rank, *Block) // where Backward leaves gradients of parameters to it
	Gradient bool                // a layer keeps the gradient of its output for Weights
	Written  []Written           // gradients that these two need not find cleared
	Logits   func(*Rank, *Block) // in the last segment

	RematForward, RematBackward func(*Rank, *Block) // of runs whose layers save less, and make it again in backward
}

// Written is the gradient of a parameter that a layer writes in the step's first micro-batch, before anything else adds
// to it, and adds to in the others: Elems of them, from element Offset of the run of Refs[Ref] on.
type Written struct{ Ref, Offset, Elems int }

// Ref names the run of a class of parameters: of the block's own layer, or of another segment's first.
type Ref struct{ Segment, Class int }

// Stage is what one pipeline stage has of its own.
type Stage struct {
	Schedule string // what it does in a step: F0*3 (F0 B0)*5 B0*3 U, with W0 where backward is split
	Chunks   []Chunk
	Buckets  []Bucket
	Gather   int // bytes of the buffer for a block's gathered parameters; two are in turn in the communication region
	Scatter  int // bytes of the buffer for a block's gradients; two come behind those
	Arena    Arena
	Inputs   Inputs
}

// Chunk is a run of the model's blocks on one stage. A micro-batch of it owns one of Buffers activation buffers
// from its forward to its backward pass, a split one's second part; micro-batch m the one numbered m modulo Buffers.
type Chunk struct {
	Index   int // in the model's order, over all stages
	Runs    []Stretch
	Offset  int // of the first buffer, in the activation region
	Size    int // bytes of a buffer
	Buffers int
}

// Stretch is Count layers of a segment from layer From on, each Stride bytes of the chunk's buffer from Offset on: the
// block's input, if it has one, what it saves, and the gradient of its output if that is kept.
//
// Remat: the layers are run by the segment's functions of that name. Split: besides, the buffer has only what they
// save; their inputs lie in the stage's spare memory, in turn at two places. Every: the buffer has only the input of
// each Every-th layer; what these groups of layers save, and their other inputs, lies in the spare memory, Inner bytes
// a layer, and is made again before the group's backward functions run; a split backward's second part runs at once.
type Stretch struct {
	Segment, From, Count, Offset, Stride int

	Remat, Split bool
	Every, Inner int
}

// Block is what a block's function works on: byte offsets in the rank's arena.
type Block struct {
	Micro, Layer int
	X, Out       int   // the block's input and output
	Slot         int   // what forward saves for backward
	DY, DX       int   // gradients of the output and of the input
	Work, Logits int   // the workspace, and where the last segment's Logits leaves its result
	Params       []int // of each of the segment's Refs, where the run begins
	Grads        []int // and where its gradients do
}

// samples tells whether there are logits to sample from, and tokens to continue.
func (p *Program) samples() bool {
	return p.Segments[len(p.Segments)-1].Logits != nil && p.Stages[0].Inputs.Tokens > 0
}
