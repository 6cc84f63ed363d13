package program

// Program holds the tables of a compiled training program: all that it knows before it runs, but for the functions of
// the model's blocks. Generated code fills one in. All ranks share it, and nothing writes to it after the start.
type Program struct {
	Name string // job name
	Hash string // hash of the program's text form
	Elem Elem
	// Types is set if tensors are stored in several types.
	Types              Types
	Plan               Plan
	Predict            Predict
	Model              Model
	Settings           Settings // from the job file; flags and --set change a copy
	Mesh               []Axis   // atoms of the mesh, fastest-varying rank first
	Groups             []Group  // generated code refers to a group by its index here
	Tokens             int      // index of the group over which token counts are summed: the replicas; -1: none
	Loss               int      // index of the group over which the loss is summed: replicas and stages; -1: none
	World              int      // index of the group of all ranks; -1: there is one rank
	Params             []Param
	Stages             []Stage // by coordinate of the atom "pp", if the mesh has it
	Stream             int     // bytes of a block's input
	Batch              BatchLayout
	Optim              OptimizerKind
	StochasticRounding bool // updated parameters are rounded stochastically to bf16; there is no master copy
	Dropout            bool // the model has dropout in training
	Experts            Experts
	Weights            Weights
	Attentions         []AttentionShape
}

// Segment is a run of blocks of one kind, without its functions.
type Segment struct {
	Name     string
	Input    bool  // a block takes the output of the block before it
	Output   bool  // a block has an output
	Refs     []Ref // parameter runs that its functions read, in the order of the block's Params and Grads
	Gradient bool  // a layer saves the gradient of its output for the second part of a split backward pass

	FirstWrites []FirstWrite // gradients that the backward functions overwrite in the first micro-batch
}

// Axis is an atom of the mesh: a coordinate of a rank that takes Size values.
type Axis struct {
	Name string
	Size int
}

// Group is the atoms over which a collective runs: its members are the ranks that differ only in these coordinates.
// The index of a member is the mixed-radix number of its coordinates, the first listed atom varying fastest.
type Group struct {
	Axes     []string
	Messages bool // the members send to each other: all-to-all, shifts
}

// Model describes the model that is trained, for reports.
type Model struct {
	Name string
	// hash of the logical model's text, which is the same on every plan and sequence length; "" if unknown. A
	// checkpoint of another model is refused
	Hash   string
	Params int64
	Layers int
	Vocab  int
	SeqLen int
	// dropout probabilities of embeddings, of inputs to the residual stream, and of attention probabilities
	Dropout   [3]float64
	FlopsStep float64 // model flops of one optimizer step over all ranks, the numerator of MFU
}

// Experts says what the runtime has to know of a model's.
type Experts struct {
	Copies int  // ranks that send the same tokens; 0 where the model has no experts
	Aux    bool // routers are trained with more than the loss
}

// AttentionShape is a kind of attention in a program for GPUs that a library may compute. A device prepares the library
// for it before the first step. Sizes are per rank.
type AttentionShape struct {
	Elem                                        Elem
	Batch, Seq, KSeq, Heads, Group, Dim, Window int
	Scale                                       float64
	Causal                                      bool
}

// BatchLayout is the numbering of a step's samples. Sample i of the global batch is row j of micro-batch m on
// replica r, where i = (m*Replicas + r)*MicroBatch + j.
type BatchLayout struct {
	MicroBatch   int      // rows of one replica's micro-batch
	MicroBatches int      // micro-batches per step
	SeqLen       int      // tokens per row
	SeqAxes      []string // atoms that split a row over ranks, fastest first; none: each rank has the whole row
	Zigzag       int      // number of parts of the zigzag order in which they split it; 0: contiguous parts
	Replicas     int      // product of ReplicaAxes
	ReplicaAxes  []string // atoms that number the replicas, fastest first
	GlobalBatch  int
	Types        bool // the model reads token types
	Patch        int  // elements per image patch; 0 if the model reads no pixels
}

// Inputs are the positions of a stage's batch, in bytes from the start of the arena. An input that the model does not
// read has position 0, where parameters are. SeqLen is the number of positions of a row that a rank has.
type Inputs struct {
	Tokens int // int32 [MicroBatches, MicroBatch, SeqLen]
	Labels int // int32 [MicroBatches, MicroBatch, SeqLen]
	Mask   int // Program.Elem [MicroBatches, MicroBatch, SeqLen]: 1 counts, 0 does not
	Types  int // int32 [MicroBatches, MicroBatch, SeqLen]: token type
	Pixels int // Types.Compute [MicroBatches, MicroBatch, SeqLen, Patch]
}

// ShortHash returns the first digits of a hash, for people.
func ShortHash(hash string) string { return hash[:min(12, len(hash))] }
