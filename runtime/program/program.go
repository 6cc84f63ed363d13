package program

// Program holds the tables of a compiled training program: all that it knows before it runs, but for the functions of
// the model's blocks. Generated code fills one in. All ranks share it, and nothing writes to it after the start.
type Program struct {
	Name string // job name
	Hash string // hash of the program's text form
	Elem Elem
	// Types is set if tensors are stored in several types.
	Types    Types
	Plan     Plan
	Predict  Predict
	Model    Model
	Settings Settings // from the job file; flags and --set change a copy
	Mesh     []Axis   // atoms of the mesh, fastest-varying rank first
	Groups   []Group  // generated code refers to a group by its index here
	Tokens   int      // index of the group over which token counts are summed: the replicas; -1: none
	Loss     int      // index of the group over which the loss is summed: replicas and stages; -1: none
	World    int      // index of the group of all ranks; -1: there is one rank
	Params   []Param
	Stages   []Stage // by coordinate of the atom "pp", if the mesh has it
	Stream   int     // bytes of a block's input
	// a device receives a pass's message during the previous pass, into Stream bytes of the communication region before
	// the buffers of Gather and Scatter
	PrepostReceives    bool
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
	GEMMs       []GEMM       // kinds that its functions compute on a GPU
}

// Axis is an atom of the mesh: a coordinate of a rank that takes Size values.
type Axis struct {
	Name string
	Size int
}

// Group is the atoms over which a collective runs: its members are the ranks that differ only in these coordinates.
// The index of a member is the mixed-radix number of its coordinates, the first listed atom varying fastest.
//
// Devices open a communicator only for groups with collectives. The others serve to compute indices, or name the
// members of bucket jobs, which have communicators of their own.
type Group struct {
	Axes     []string
	Tensors  bool // tensors are communicated over the group
	Numbers  bool // single numbers are communicated over the group
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
	Pitch                                       int // elements from one position of q, k, v to the next; 0: contiguous
	Scale                                       float64
	Causal                                      bool
}

// GEMM is a kind of GEMM in a program for GPUs, op(A)[M,K] op(B)[K,N]. A device computes it once before the first step,
// so that the library loads its kernel then. Sizes are per rank.
type GEMM struct {
	Groups, M, N, K        int // Groups is the number of consecutive matrices, 0 for one GEMM without a batch dim
	TransposeA, TransposeB bool
	In, Out                Elem   // of A and B; of the result
	FP8A, FP8B             string // FP8 formats to which A and B are rounded; "" if they are not
	Epilogue               string // GELU, GELUGrad, RowSum or ""
	Bias                   bool   // a row is added to each row of the result
	KeepsInput             bool   // with GELU: its input is stored too
}

// Epilogues of a [GEMM].
const (
	GELU     = "gelu"
	GELUGrad = "gelu_grad" // multiplies by GELU's derivative
	RowSum   = "row_sum"   // also sums the rows of B
)

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
	Documents    bool // the model reads the borders of documents
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

	// Starts and Ends are the first position of the document to which a position belongs, and the position after its
	// last one: int32 [MicroBatches, MicroBatch, BatchLayout.SeqLen], whole rows on each rank.
	Starts, Ends int
}

// ShortHash returns the first digits of a hash, for people.
func ShortHash(hash string) string { return hash[:min(12, len(hash))] }
