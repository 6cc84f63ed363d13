package report

// Step is a finished optimizer step.
type Step struct {
	Step      int     // counted from 1
	Loss      float64 // nats per unmasked token, mean over the global batch, before the update
	LR        float64
	GradNorm  float64 // before clipping
	Skipped   bool    // the update was not applied
	LossScale float64 // loss scale of this step; 0 if the loss is not scaled
	AuxLoss   float64 // the routers' auxiliary loss, mean over the sequences of the global batch
	Experts   []ExpertLoad
	Tokens    int64 // unmasked tokens since training began
	Seconds   float64
}

// ParamNorm has the L2 norms of a parameter after a step and of its gradient before clipping.
type ParamNorm struct {
	Name         string
	Weight, Grad float64
}

// SourceCount is how many training samples one of the data's sources gave.
type SourceCount struct {
	Path    string
	Samples int64
}

// Result is the outcome of a run.
type Result struct {
	Name      string
	Steps     int // last finished step, counted over all runs
	FirstStep int // first step of this run; 1 unless it was resumed
	Skipped   int // updates of this run that were not applied
	FirstLoss float64
	Loss      float64 // loss of the last step; NaN if this run had no step, that is Steps < FirstStep
	ValidLoss float64 // NaN if there was no evaluation
	GradNorm  float64 // gradient norm of the last step

	Tokens  int64         // unmasked tokens since training began
	Sources []SourceCount // of the training data, in the samples since training began; nil if they are not counted
	Timing

	Ranks int
	Here  int // ranks of this process: all of them unless a launcher started several processes
	Memory
	Sample string
	Export string // folder to which the model was exported

	Dir        string
	Metrics    string // path of metrics.jsonl
	Checkpoint string // folder of the last committed checkpoint; "" if there is none
}

// Memory is what a run has on the host, in bytes.
type Memory struct {
	ArenaBytes int64 // arena of one rank
	CopyBytes  int64 // copy of all ranks' state from which checkpoints are written while training continues
	PeakBytes  int64 // peak resident memory of the process; 0 if the system does not report it
}

// ExpertLoad describes how the choices of a step's tokens are distributed over the experts of a layer.
type ExpertLoad struct {
	Segment string
	Layer   int
	Load    float64 // choices of the busiest expert divided by the mean: 1 is balanced
	CV      float64 // coefficient of variation of the experts' choices
	Dropped int64   // choices beyond an expert's capacity; Load and CV include them
	Further int     // rounds after each micro-batch's first, on the rank with the most
	Rounds  []int   // number of rounds on each rank
}

// Timing is how long a run took.
type Timing struct {
	Seconds         float64 // total time of this run's steps
	StepSeconds     float64 // median over this run's steps, without the first
	TokensPerSecond float64 // at that median
	MFU             float64 // at that median; NaN if the peak is unknown
}

// HasSteps reports whether the run executed any step.
func (r *Result) HasSteps() bool { return r.Steps >= r.FirstStep }
