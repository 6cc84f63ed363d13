package program

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
