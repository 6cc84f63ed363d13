package program

import "iter"

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

// Bucket is a range of the flat parameter space whose gradients are reduced together. Parameters and gradients have the
// same layout. Optimizer state exists for [0, Elems) if Shard is -1, else for this rank's 1/n of that range. It begins
// at element State of each moment.
type Bucket struct {
	Class  int
	Offset int // in elements, in the flat space
	Elems  int // padded to a multiple of the shard group's size
	Reduce int // group over which the gradient is first all-reduced; -1: none
	Sum    int // replica group over which it is then summed, of which Shard may be a part; -1: none (one replica)
	Shard  int // group whose ranks each own 1/n (ZeRO >= 1: the gradient is reduce-scattered); -1: none
	State  int
	// first element of its parameters in their region: all of them, or this rank's part if ShardedParams
	Params int
	// first element of its gradients in their region: all of them, or this rank's part if ShardedGrads
	Grads          int
	ShardedGrads   bool     // gradients are reduce-scattered over Shard after each micro-batch (ZeRO >= 2)
	ShardedParams  bool     // parameters are sharded over Shard and gathered for each block that uses them (ZeRO 3)
	TiedStages     bool     // the first and last stage both have these parameters: gradients are summed over both first
	ReplicatedOver []string // atoms over which the parameters are replicated: only coordinate 0 counts in the norm
	Pieces         []Piece
}

// Piece is a layer's part of the bucket's class. Offset is in elements, in the flat space.
type Piece struct{ Segment, Layer, Offset int }

// Arena is one rank's memory: one allocation, divided into regions at compile time. Offsets are multiples of 64 bytes.
type Arena struct {
	Size        int
	Params      Region
	Grads       Region
	Master      Region // the optimizer's full-precision copy of its part of the parameters
	Moment1     Region // AdamW's and Adam's m, SGD's momentum
	Moment2     Region // AdamW's and Adam's v
	Activations Region
	Workspace   Region
	Comm        Region
	Batch       Region
	Logits      Region // [micro-batch rows of one rank, vocab], written by Segment.Logits
	Scratch     Region // float32 copies of an op's 16-bit operands
}

// regions yields the regions of the arena in order, with their names.
func (a *Arena) Regions() iter.Seq2[string, Region] {
	return func(yield func(string, Region) bool) {
		_ = yield("params", a.Params) && yield("grads", a.Grads) && yield("master", a.Master) &&
			yield("moment1", a.Moment1) && yield("moment2", a.Moment2) &&
			yield("activations", a.Activations) && yield("workspace", a.Workspace) && yield("comm", a.Comm) &&
			yield("batch", a.Batch) && yield("logits", a.Logits) && yield("scratch", a.Scratch)
	}
}

// Region is a part of the arena, in bytes.
type Region struct{ Offset, Size int }
