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

// Size is the number of bytes of one element.
func (e Elem) Size() int { return [...]int{F32: 4, F64: 8, BF16: 2, F16: 2}[e] }

func (e Elem) String() string {
	return [...]string{F32: "f32", F64: "f64", BF16: "bf16", F16: "fp16"}[e]
}

// Program is everything that a compiled training program knows before it runs: the tables below and the
// functions of the model's blocks. Generated code fills one in; Run and Main execute it. It is shared by all ranks
// and never written after start.
type Program struct {
	Name string // of the job
	Hash string // of the program's text form
	Elem Elem
	// Types is set where tensors are kept in several types.
	Types              Types
	Plan               Plan
	Predict            Predict
	Model              Model
	Settings           Settings // what the job file said; flags and --set change a copy
	Mesh               []Axis   // atoms of the mesh, fastest-varying rank first
	Groups             []Group  // generated code names a group by its index here
	Tokens             int      // groups of the step's ends, -1 none: that which numbers the replicas,
	Loss               int      // those and the stages,
	World              int      // all ranks
	Params             []Param
	Segments           []Segment
	Stages             []Stage // by coordinate of the atom "pp", if the mesh has it
	Stream             int     // bytes of a block's input
	Batch              BatchLayout
	Optim              OptimizerKind
	StochasticRounding bool // updated parameters are rounded to bf16 by chance; there is no master copy
	Dropout            bool // the model drops anything in training
	Experts            Experts
	Weights            Weights
	Devices            Devices // what it is compiled for; nil: this CPU
	Attends            []Attends
}

// Attends is a kind of attention that a program for GPUs has functions for, which a library may compute: a device makes
// ready for it before the first step. Sizes are a rank's.
type Attends struct {
	Elem                                        Elem
	Batch, Seq, KSeq, Heads, Group, Dim, Window int
	Scale                                       float64
	Causal                                      bool
}

// Axis is an atom of the mesh: Size consecutive steps of a rank's coordinate.
type Axis struct {
	Name string
	Size int
}

// Group names the atoms over which a collective runs: the ranks that differ only in these coordinates.
// The order of its members is the mixed-radix number of the atoms in the order listed here, the first
// atom varying fastest.
type Group struct{ Axes []string }

// Model describes what is trained, for reports.
type Model struct {
	Name string
	// of the logical model's text, the same on every plan and for every length of samples; "" unknown. Checkpoints of
	// another are refused
	Hash   string
	Params int64
	Layers int
	Vocab  int
	SeqLen int
	// chances to drop an element of the embeddings, of what enters the residual stream, of the attention's
	// probabilities
	Dropout   [3]float64
	FlopsStep float64 // model flops of one optimizer step (MFU's numerator), all ranks
}

// Dim is a dimension of a logical tensor and the atoms that split it, the first varying fastest.
// The local part is ceil(Size / ranks) wide; the last parts may be padded.
type Dim struct {
	Name string
	Size int
	Axes []string
}

// InitKind says how a parameter starts.
type InitKind uint8

const (
	Zeros InitKind = iota
	Ones
	Normal // mean 0, standard deviation Init.Std
)

// Init is a parameter's initial distribution, drawn by the counter-based generator from (seed, name,
// layer, global element index), so that it is the same on every plan.
type Init struct {
	Kind  InitKind
	Std   float64
	First int // rows of the first dim that are so, the others begin at 0; 0: all
	Zero  int // 1 + a row of the first dim that begins at 0; 0: none
}

// Param is one logical parameter, or one per layer of a segment.
type Param struct {
	Name   string // as in checkpoints; "{layer}" stands for the layer's index
	Layers int
	Dims   []Dim
	Places []Place // its own; then those where a stage that lacks the owner's segment has it too
	Init   Init
	Decay  bool // weight decay applies

	// Choices is how many experts a token goes to, of a parameter that is added to experts' scores; 0: of any other.
	// Its gradient is how many choices each expert got.
	Choices int
}

// Place is where a parameter lies in its layer's run of a class, in elements.
type Place struct{ Segment, Class, Offset int }

// Bucket is a run of the flat parameter space whose gradients are reduced together. Parameters and
// gradients share the layout. Optimizer state exists for [0, Elems) where Shard is -1, else for this rank's
// 1/n of it, and lies at State (in elements) from the start of each moment.
type Bucket struct {
	Class  int
	Offset int // in elements, in the flat space
	Elems  int // padded to a multiple of the shard group's size
	Reduce int // group over which the gradient is first all-reduced; -1 none
	Sum    int // replica group over which it is then summed, of which Shard may be a part; -1 none (one replica)
	Shard  int // group whose ranks each own 1/n (ZeRO >= 1: the gradient is reduce-scattered); -1 none
	State  int
	// where its parameters begin in their region, in elements: all of them, or this rank's part if Fetch
	Params int
	Grads  int      // likewise its gradients: all of them, or this rank's part if Each
	Each   bool     // gradients are scattered over Shard after each micro-batch (ZeRO >= 2)
	Fetch  bool     // parameters lie scattered over Shard and are gathered for each block that uses them (ZeRO 3)
	Ends   bool     // the first and the last stage have these parameters: the gradient is summed over both before Sum
	Count  []string // atoms over which the parameters are replicated: the norm counts coordinate 0 of each
	Pieces []Piece
}

// Piece is a layer's run of the bucket's class; Offset is in elements, in the flat space.
type Piece struct{ Segment, Layer, Offset int }

// Region is a part of the arena, in bytes.
type Region struct{ Offset, Size int }

// Arena is one rank's memory: one allocation, laid out in regions at compile time. Offsets are multiples
// of 64 bytes.
type Arena struct {
	Size        int
	Params      Region
	Grads       Region
	Master      Region // the optimizer's copy of its part of the parameters
	Moment1     Region // AdamW's and Adam's m, SGD's momentum
	Moment2     Region // AdamW's and Adam's v
	Activations Region
	Workspace   Region
	Comm        Region
	Batch       Region
	Logits      Region // [micro-batch rows of one rank, vocab], filled by Program.Logits
	Scratch     Region // where a rank widens the 16-bit numbers of an op
}

// regions lists the parts of the arena in their order.
func (a *Arena) regions() iter.Seq2[string, Region] {
	return func(yield func(string, Region) bool) {
		_ = yield("params", a.Params) && yield("grads", a.Grads) && yield("master", a.Master) &&
			yield("moment1", a.Moment1) && yield("moment2", a.Moment2) &&
			yield("activations", a.Activations) && yield("workspace", a.Workspace) && yield("comm", a.Comm) &&
			yield("batch", a.Batch) && yield("logits", a.Logits) && yield("scratch", a.Scratch)
	}
}

// BatchLayout says how a step's samples are numbered. Sample i of the
// global batch is row j of micro-batch m on replica r, with i = (m*Replicas + r)*MicroBatch + j.
type BatchLayout struct {
	MicroBatch   int      // rows of one replica's micro-batch
	MicroBatches int      // per step
	SeqLen       int      // tokens of a row
	SeqAxes      []string // atoms that split a row over ranks, fastest first; none: each has all of it
	Zigzag       int      // of how many parts the order is zigzag in which they do; 0: the row's own
	Replicas     int      // product of ReplicaAxes
	ReplicaAxes  []string // atoms that number the replicas, fastest first
	GlobalBatch  int
	Types        bool // the model reads token types
	Patch        int  // elements of a patch; 0 where the model reads no pixels
}

// Inputs say where a stage's batch lies, in bytes from the start of the arena: 0, where parameters lie, for an input
// that the model does not read. SeqLen is what a rank has of a row.
type Inputs struct {
	Tokens int // int32 [MicroBatches, MicroBatch, SeqLen]
	Labels int // likewise
	Mask   int // Program.Elem [MicroBatches, MicroBatch, SeqLen]: 1 counts, 0 does not
	Types  int // like Tokens: which segment of its text a token is of
	Pixels int // Types.Compute [MicroBatches, MicroBatch, SeqLen, Patch]
}

// OptimizerKind is compiled in; its rates are settings.
type OptimizerKind uint8

const (
	AdamW OptimizerKind = iota // decoupled decay
	Adam                       // decay added to the gradient
	SGD                        // with momentum when Settings say so; decay added to the gradient
)

func (k OptimizerKind) String() string { return [...]string{"adamw", "adam", "sgd"}[k] }

// Plan is the lock as a value: the plan as users see it, contract.md's keys, what it was decided from, and what was
// expected of it on the job's cluster.
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
	Text                            string // one line, as planc prints it: "dp 2 · tp 2 · zero 1 · micro_batch 4×8"

	Cluster     string // as people say it: "4 × dgx-h100"
	DecidedFrom DecidedFrom
	StepSeconds float64 // predicted on that cluster
	MemoryBytes int64   // of one rank, likewise
}

// Precision says in which type each kind of state is kept, as the job file names types.
type Precision struct{ Compute, Params, Grads, Reduce, Master, Moments string }

// DecidedFrom are the hashes of the job's parts that decided the plan.
type DecidedFrom struct{ Model, Train, Cluster, Objective, Plan string }

// Predict is what the planner expects of a step on the job's cluster.
type Predict struct {
	StepSeconds     float64
	StepError       float64 // by which a step may be off, as a part of StepSeconds; 0 unknown
	Measured        bool    // the cluster's file has measurements
	TokensPerSecond float64
	MemoryBytes     int64   // of one rank, the arena and the engine's overhead
	PeakFlops       float64 // of one device in the compute type; MFU's denominator, 0 unknown
}

// Settings are the job's run-time fields ([r] in contract.md), named by their json path.
type Settings struct {
	Data  DataSettings  `json:"data"`
	Train TrainSettings `json:"train"`
	Dir   string        `json:"-"` // folder of the job file: relative paths in Data start here
}

// DataSettings say what is read. Paths keep "goroot:" and ${VAR} as the job file wrote them.
type DataSettings struct {
	Root          string  `json:"root"`
	Train         []File  `json:"train"`
	Valid         []File  `json:"valid"`          // files, or none:
	ValidFraction float64 `json:"valid_fraction"` // held out of train's end when Valid is empty
	Tokenizer     string  `json:"tokenizer"`      // "bytes"
}

// File is one file or glob and its weight in the mixture (1 unless said).
type File struct {
	Path   string  `json:"path"`
	Weight float64 `json:"weight"`
}

// TrainSettings are the rates, lengths and cadences.
type TrainSettings struct {
	Steps       int                `json:"steps"` // exactly one of steps, epochs, tokens is positive
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

// PrecisionSettings are what of the precision is not compiled in.
type PrecisionSettings struct {
	LossScale LossScaleSettings `json:"loss_scale"`
}

// ExpertSettings are what of train.experts is not compiled in.
type ExpertSettings struct {
	BiasRate float64 `json:"bias_rate"` // what is added to an expert's score moves by so much a step, against its load
}

// OptimizerSettings: Betas[0] is also SGD's momentum (0 for none).
type OptimizerSettings struct {
	LR          float64    `json:"lr"`
	Betas       [2]float64 `json:"betas"`
	Eps         float64    `json:"eps"`
	WeightDecay float64    `json:"weight_decay"`
	Momentum    float64    `json:"momentum"`
	ClipNorm    float64    `json:"clip_norm"` // 0: no clipping
}

// ScheduleSettings: Kind is constant, linear, cosine, wsd or inverse_sqrt; Warmup in steps.
type ScheduleSettings struct {
	Kind   string  `json:"kind"`
	Warmup int     `json:"warmup"`
	MinLR  float64 `json:"min_lr"`
	Decay  int     `json:"decay"` // wsd: steps of the final decay
}

// EvalSettings: every 0 is never but at the end.
type EvalSettings struct {
	Every   int    `json:"every"`
	Batches int    `json:"batches"` // global batches; 0 is all
	Sample  string `json:"sample"`  // prompt of the passage printed at the end
}

// CheckpointSettings: every 0 is only at the end and on request.
type CheckpointSettings struct {
	Every int `json:"every"`
}
