package runtime

import "iter"

// Elem is the element type of a program's tensors.
type Elem uint8

const (
	F32 Elem = iota
	F64
	BF16
	F16
)

// Size returns the size of one element in bytes.
func (e Elem) Size() int { return [...]int{F32: 4, F64: 8, BF16: 2, F16: 2}[e] }

func (e Elem) String() string {
	return [...]string{F32: "f32", F64: "f64", BF16: "bf16", F16: "fp16"}[e]
}

// Program is what a compiled training program knows before it runs: tables, and the functions of the model's blocks.
// Generated code fills one in; Run and Main execute it. All ranks share it, and nothing writes to it after the start.
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
	Segments           []Segment
	Stages             []Stage // by coordinate of the atom "pp", if the mesh has it
	Stream             int     // bytes of a block's input
	Batch              BatchLayout
	Optim              OptimizerKind
	StochasticRounding bool // updated parameters are rounded stochastically to bf16; there is no master copy
	Dropout            bool // the model has dropout in training
	Experts            Experts
	Weights            Weights
	Devices            Devices // devices that the program is compiled for; nil: this CPU
	Attentions         []AttentionShape
}

// AttentionShape is a kind of attention in a program for GPUs that a library may compute. A device prepares the library
// for it before the first step. Sizes are per rank.
type AttentionShape struct {
	Elem                                        Elem
	Batch, Seq, KSeq, Heads, Group, Dim, Window int
	Scale                                       float64
	Causal                                      bool
}

// Axis is an atom of the mesh: a coordinate of a rank that takes Size values.
type Axis struct {
	Name string
	Size int
}

// Group is the atoms over which a collective runs: its members are the ranks that differ only in these coordinates.
// The index of a member is the mixed-radix number of its coordinates, the first listed atom varying fastest.
type Group struct{ Axes []string }

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

// Dim is a dimension of a logical tensor and the atoms that split it, the first varying fastest. The local part has
// ceil(Size / ranks) elements; the last parts may be padded.
type Dim struct {
	Name string
	Size int
	Axes []string
}

// InitKind is the kind of a parameter's initial distribution.
type InitKind uint8

const (
	Zeros InitKind = iota
	Ones
	Normal // mean 0, standard deviation Init.Std
)

// Init is a parameter's initial distribution. The counter-based generator draws it from (seed, name, layer, global
// element index), so that it is the same on every plan.
type Init struct {
	Kind  InitKind
	Std   float64
	First int // number of leading rows of the first dim that are drawn, the others are 0; 0: all rows
	Zero  int // 1 + the row of the first dim that is 0; 0: no row
}

// Param is one logical parameter, or one per layer of a segment.
type Param struct {
	Name   string // as in checkpoints; "{layer}" is replaced by the layer's index
	Layers int
	Dims   []Dim
	Places []Place // its own place, then its places on stages that share it without having its owner's segment
	Init   Init
	Decay  bool // weight decay applies

	// Choices is the number of experts per token if the parameter is the bias of the experts' scores, else 0. The
	// gradient of such a bias is the number of tokens that chose each expert.
	Choices int
}

// Place is the position of a parameter in its layer's run of a class, in elements.
type Place struct{ Segment, Class, Offset int }

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
	SharedByEnds   bool     // the first and last stage both have these parameters: gradients are summed over both first
	ReplicatedOver []string // atoms over which the parameters are replicated: only coordinate 0 counts in the norm
	Pieces         []Piece
}

// Piece is a layer's part of the bucket's class. Offset is in elements, in the flat space.
type Piece struct{ Segment, Layer, Offset int }

// Region is a part of the arena, in bytes.
type Region struct{ Offset, Size int }

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
func (a *Arena) regions() iter.Seq2[string, Region] {
	return func(yield func(string, Region) bool) {
		_ = yield("params", a.Params) && yield("grads", a.Grads) && yield("master", a.Master) &&
			yield("moment1", a.Moment1) && yield("moment2", a.Moment2) &&
			yield("activations", a.Activations) && yield("workspace", a.Workspace) && yield("comm", a.Comm) &&
			yield("batch", a.Batch) && yield("logits", a.Logits) && yield("scratch", a.Scratch)
	}
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

// OptimizerKind is the optimizer's algorithm, which is compiled in. Its hyperparameters are settings.
type OptimizerKind uint8

const (
	AdamW OptimizerKind = iota // decoupled weight decay
	Adam                       // weight decay added to the gradient
	SGD                        // with momentum if the settings have one; weight decay added to the gradient
)

func (k OptimizerKind) String() string { return [...]string{"adamw", "adam", "sgd"}[k] }

// Plan is the content of the lock: the plan with contract.md's keys, the hashes that it was decided from, and the
// prediction for the job's cluster.
type Plan struct {
	DP, TP, PP, CP, EP, ETP         int
	VPP                             int
	SP                              bool
	CPKind                          string
	Zero, ZeroGroup                 int
	MicroBatch, MicroBatches        int
	Schedule, Recompute             string
	RecomputeLayers, RecomputeEvery int
	RecomputeSplit                  bool
	StageLayers                     []int
	AxisOrder, Offload              []string
	MoESlack                        float64
	Precision                       Precision
	Text                            string // on one line, as planc prints it: "dp 2 · tp 2 · zero 1 · micro_batch 4×8"

	Cluster     string // name for people: "4 × dgx-h100"
	DecidedFrom DecidedFrom
	StepSeconds float64 // predicted seconds per step on that cluster
	MemoryBytes int64   // predicted bytes per rank on that cluster
}

// Precision is the type of each kind of state, in the job file's spelling.
type Precision struct{ Compute, Params, Grads, Reduce, Master, Moments string }

// DecidedFrom holds the hashes of the parts of the job that decided the plan.
type DecidedFrom struct{ Model, Train, Cluster, Objective, Plan string }

// Predict is the planner's prediction for a step on the job's cluster.
type Predict struct {
	StepSeconds     float64
	StepError       float64 // relative error of StepSeconds; 0 if unknown
	Measured        bool    // the cluster's file has measurements
	TokensPerSecond float64
	MemoryBytes     int64   // per rank: arena and engine overhead
	PeakFlops       float64 // peak flop/s of one device in the compute type, the denominator of MFU; 0 if unknown
}

// Settings are the run-time fields of the job ([r] in contract.md), named by their JSON path.
type Settings struct {
	Data  DataSettings  `json:"data"`
	Train TrainSettings `json:"train"`
	Dir   string        `json:"-"` // the job file's folder, to which paths in Data are relative
}

// DataSettings is the data that is read. Paths keep "goroot:" and ${VAR} as they are in the job file.
type DataSettings struct {
	Root          string  `json:"root"`
	Train         []File  `json:"train"`
	Valid         []File  `json:"valid"`          // validation files; none: see ValidFraction
	ValidFraction float64 `json:"valid_fraction"` // fraction held out from the end of train if Valid is empty
	Tokenizer     string  `json:"tokenizer"`      // "bytes"
}

// File is a file or glob pattern and its weight in the mixture (default 1).
type File struct {
	Path   string  `json:"path"`
	Weight float64 `json:"weight"`
}

// TrainSettings are the hyperparameters, lengths and intervals of training.
type TrainSettings struct {
	Steps       int                `json:"steps"` // exactly one of steps, epochs and tokens is positive
	Epochs      float64            `json:"epochs"`
	Tokens      int64              `json:"tokens"`
	Init        string             `json:"init"` // "random" or a folder of safetensors
	Seed        uint64             `json:"seed"`
	Optimizer   OptimizerSettings  `json:"optimizer"`
	Schedule    ScheduleSettings   `json:"schedule"`
	Eval        EvalSettings       `json:"eval"`
	Checkpoint  CheckpointSettings `json:"checkpoint"`
	Experts     ExpertSettings     `json:"experts"`
	OnNonfinite string             `json:"on_nonfinite"` // "skip" or "stop"
	Precision   PrecisionSettings  `json:"precision"`
}

// PrecisionSettings are the parts of the precision that are not compiled in.
type PrecisionSettings struct {
	LossScale LossScaleSettings `json:"loss_scale"`
}

// ExpertSettings are the parts of train.experts that are not compiled in.
type ExpertSettings struct {
	BiasRate float64 `json:"bias_rate"` // step by which an expert's bias moves against its load
}

// OptimizerSettings are the optimizer's hyperparameters.
type OptimizerSettings struct {
	LR          float64    `json:"lr"`
	Betas       [2]float64 `json:"betas"`
	Eps         float64    `json:"eps"`
	WeightDecay float64    `json:"weight_decay"`
	Momentum    float64    `json:"momentum"`
	ClipNorm    float64    `json:"clip_norm"` // 0: no clipping
}

// ScheduleSettings is the learning-rate schedule. Kind is constant, linear, cosine, wsd or inverse_sqrt.
type ScheduleSettings struct {
	Kind   string  `json:"kind"`
	Warmup int     `json:"warmup"` // steps
	MinLR  float64 `json:"min_lr"`
	Decay  int     `json:"decay"` // steps of wsd's final decay
}

// EvalSettings is the schedule of evaluations.
type EvalSettings struct {
	Every   int    `json:"every"`   // steps; 0: only at the end
	Batches int    `json:"batches"` // global batches; 0: all
	Sample  string `json:"sample"`  // prompt of the text that is generated at the end
}

// CheckpointSettings is the schedule of checkpoints.
type CheckpointSettings struct {
	Every int `json:"every"` // steps; 0: only at the end and on request
}
