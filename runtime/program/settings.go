package program

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
	Sampling      string  `json:"sampling"`       // shuffle or random; "": shuffle
	Weights       string  `json:"weights"`        // meaning of weights: passes or shares; "": passes
	Documents     string  `json:"documents"`      // packed or separate; "": packed
	Tokenizer     string  `json:"tokenizer"`      // as data.tokenizer of the job; "": bytes
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
	EarlyStop   EarlyStopSettings  `json:"early_stop"`
	Checkpoint  CheckpointSettings `json:"checkpoint"`
	Experts     ExpertSettings     `json:"experts"`
	OnNonfinite string             `json:"on_nonfinite"` // "skip" or "stop"
	OnSpike     string             `json:"on_spike"`     // "warn", which "" means too, RollBackOnSpikes or SkipSpikes
	Precision   PrecisionSettings  `json:"precision"`
}

// PrecisionSettings are the parts of the precision that are not compiled in.
type PrecisionSettings struct {
	LossScale LossScaleSettings `json:"loss_scale"`
}

// LossScaleSettings say what the loss is multiplied by before the backward pass, so that small gradients do not vanish
// in 16 bits. Kind is none (or empty), static, or dynamic.
//
// A dynamic scale begins at Init. It doubles after each Window good steps in a row. A bad step, whose gradient is not
// finite on some rank, is skipped on all; each but the first Hysteresis-1 of them halves the scale, down to Min, where
// it stays. Doubling grants these free ones again, and so does each good step if Consecutive.
//
// DeepSpeed's DynamicLossScaler has these rules and defaults (window 1000, hysteresis 2, min 1). PyTorch's GradScaler
// is window 2000, hysteresis 1 and no min, Megatron-LM's hysteresis 2 with init 2^32.
type LossScaleSettings struct {
	Kind        string  `json:"kind"`
	Init        float64 `json:"init"`
	Window      int     `json:"window"`
	Hysteresis  int     `json:"hysteresis"`
	Min         float64 `json:"min"`
	Consecutive bool    `json:"consecutive"`
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
	Every        int     `json:"every"`         // steps; 0: only at the end
	Batches      int     `json:"batches"`       // global batches; 0: all
	Sample       string  `json:"sample"`        // prompt of the text that is generated
	SampleEvery  int     `json:"sample_every"`  // steps; 0: only at the end
	SampleTokens int     `json:"sample_tokens"` // tokens to generate; 0: [DefaultSampleTokens]
	Temperature  float64 `json:"temperature"`   // of sampling; 0: [DefaultTemperature]
	TopK         int     `json:"top_k"`         // tokens to choose from at each position; 0: all
}

// Defaults of sampling. Temperature 0.8 is that of nanoGPT's sample.py.
const (
	DefaultSampleTokens = 160
	DefaultTemperature  = 0.8
)

// EarlyStopSettings end a run when a metric stops improving. Without a metric and a patience it runs to its last step.
type EarlyStopSettings struct {
	Metric   string  `json:"metric"`    // "valid_loss", which "" with a patience means too
	Patience int     `json:"patience"`  // evaluations in a row without an improvement; 0 with a metric: 3
	MinDelta float64 `json:"min_delta"` // smallest decrease that is an improvement
}

// IsOn reports whether the run may end before its last step.
func (s *EarlyStopSettings) IsOn() bool { return s.Metric != "" || s.Patience > 0 }

// CheckpointSettings is the schedule of checkpoints. Without an interval, they are saved only at the end and when the
// run is stopped.
type CheckpointSettings struct {
	Every        int     `json:"every"`         // steps; 0: none
	EveryMinutes float64 `json:"every_minutes"` // since the last checkpoint; 0: none
	EveryEpochs  float64 `json:"every_epochs"`  // passes over the data; 0: none
	Async        bool    `json:"async"`         // written while training continues
	KeepLast     int     `json:"keep_last"`     // newest checkpoints to keep; 0: all
	KeepEvery    int     `json:"keep_every"`    // checkpoints of multiples of this step are kept too; 0: none
	Best         string  `json:"best"`          // metric by which the best are kept too, "valid_loss"; "": none
	TopK         int     `json:"top_k"`         // how many of the best; 0: 1
}

// HasInterval reports whether checkpoints are saved at intervals.
func (c *CheckpointSettings) HasInterval() bool {
	return c.Every > 0 || c.EveryMinutes > 0 || c.EveryEpochs > 0
}

// Values of TrainSettings.OnSpike with which a run returns to an earlier checkpoint.
const (
	RollBackOnSpikes = "rollback" // goes on with the samples after the spike
	SkipSpikes       = "skip"     // leaves out only the batch of the spike
)

// GoesBack reports whether a run returns to an earlier checkpoint after a loss spike.
func (t *TrainSettings) GoesBack() bool {
	return t.OnSpike == RollBackOnSpikes || t.OnSpike == SkipSpikes
}
