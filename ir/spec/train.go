package spec

// Train is the training recipe.
type Train struct {
	SeqLen            int        `yaml:"seq_len" class:"d" min:"1" max:"1e8" doc:"tokens per sequence" absent:"required" eg:"1024"`
	GlobalBatch       int        `yaml:"global_batch" class:"d" min:"1" max:"1e8" doc:"sequences per optimizer step" absent:"required" eg:"480"`
	GlobalBatchTokens int        `yaml:"global_batch_tokens" class:"d" min:"1" max:"1e12" doc:"tokens per optimizer step, instead of global_batch" absent:"not used" eg:"524288"`
	Steps             int        `yaml:"steps" class:"r" min:"1" max:"1e12" doc:"optimizer steps in total; or use epochs or tokens" absent:"required to compile" eg:"600000"`
	Epochs            float64    `yaml:"epochs" class:"r" over:"0" max:"1e9" doc:"passes over data.train, instead of steps" absent:"not used" eg:"3"`
	Tokens            int64      `yaml:"tokens" class:"r" min:"1" max:"1e18" doc:"tokens to train on, instead of steps" absent:"not used" eg:"300B"`
	Precision         Precision  `yaml:"precision" class:"d" doc:"f64, f32, bf16, fp16, fp8, or a mapping" absent:"bf16; fp16 on V100 and T4; f32 on CPU" eg:"bf16"`
	Init              string     `yaml:"init" class:"r" doc:"random, or a folder of safetensors: a planc checkpoint or a Hugging Face model" eg:"./gpt2"`
	PaddingRow        string     `yaml:"padding_row" class:"c" enum:"trained,frozen" doc:"whether lookups of the model's pad_token_id train its row of the token table; frozen is what transformers does" absent:"frozen with train.init, else trained" eg:"trained"`
	Optimizer         Optimizer  `yaml:"optimizer" doc:"how parameters are updated"`
	Schedule          Schedule   `yaml:"schedule" doc:"learning-rate schedule"`
	Dropout           *float64   `yaml:"dropout" class:"c" min:"0" under:"1" doc:"dropout probability; replaces the model's own" absent:"the model's" eg:"0.0"`
	Experts           Routing    `yaml:"experts" doc:"how routers are trained, and how many tokens an expert accepts"`
	Seed              uint64     `yaml:"seed" class:"r" doc:"seed of all random numbers" eg:"1337"`
	Eval              Eval       `yaml:"eval" doc:"when and how validation loss is measured"`
	EarlyStop         EarlyStop  `yaml:"early_stop" doc:"whether the run ends when the validation loss stops improving"`
	Checkpoint        Checkpoint `yaml:"checkpoint" doc:"when state is saved"`
	OnNonfinite       string     `yaml:"on_nonfinite" class:"r" enum:"skip,stop,rollback" now:"skip,stop" doc:"action if gradients are not finite: skip the step, stop the run, or roll back; skip ends the run at the tenth such step in a row" eg:"stop"`
	OnSpike           string     `yaml:"on_spike" class:"r" enum:"warn,rollback,skip" doc:"action if the loss spikes: warn; roll back to the last checkpoint and go on with the samples after the spike; or skip the batch of the spike, by repeating the steps from the last checkpoint without it" eg:"rollback"`
	Engine            string     `yaml:"engine" class:"d" enum:"planc,megatron,megatron-fsdp,fsdp,deepspeed,hai-llm" meant:"torch=fsdp,pytorch=fsdp,torchtitan=fsdp,fsdp2=fsdp,accelerate=fsdp,megatron-lm=megatron,megatron-core=megatron,nemo=megatron" doc:"training engine whose plans are searched and priced; only planc's can be compiled" eg:"planc"`
}

// Optimizer is the kind of optimizer and its hyperparameters.
type Optimizer struct {
	Kind        string     `yaml:"kind" class:"d" enum:"adamw,adam,sgd" meant:"adamw=adamw,adam=adam,sgd=sgd,adamw_torch=adamw,adamw_torch_fused=adamw,fused_adam=adamw,fusedadam=adamw" doc:"adamw, adam (weight decay is added to the gradient), sgd" eg:"adamw"`
	LR          float64    `yaml:"lr" class:"r" over:"0" max:"3.4e38" doc:"peak learning rate" eg:"6e-4"`
	Betas       [2]float64 `yaml:"betas" class:"r" min:"0" under:"1" doc:"decay rates of the two moments" eg:"[0.9, 0.95]"`
	Eps         float64    `yaml:"eps" class:"r" over:"0" doc:"added to the square root of the second moment" eg:"1e-8"`
	WeightDecay float64    `yaml:"weight_decay" class:"r" min:"0" doc:"weight decay of parameters with two or more dims" absent:"0.1 with adamw, else 0" eg:"0.1"`
	NoDecay     []string   `yaml:"no_decay" class:"c" doc:"names in checkpoints of parameters without weight decay; * stands for any characters" absent:"none" eg:"[embed.*]"`

	LRMultipliers map[string]float64 `yaml:"lr_multipliers" class:"c" over:"0" max:"1e6" doc:"factors of the learning rate of parameters, by the same patterns; at most one may match a parameter" absent:"1 for all" eg:"{embed.*: 0.1}"`

	Momentum float64 `yaml:"momentum" class:"r" min:"0" under:"1" doc:"momentum of sgd; with 0 the program is compiled without a momentum buffer, and rejects other values" absent:"0" eg:"0.9"`
	ClipNorm float64 `yaml:"clip_norm" class:"r" min:"0" doc:"largest gradient norm; 0: no clipping" eg:"1.0"`
}

// Schedule is the learning-rate schedule.
type Schedule struct {
	Kind   string  `yaml:"kind" class:"r" enum:"constant,linear,cosine,wsd,inverse_sqrt" doc:"how the learning rate falls from its peak to min_lr" eg:"cosine"`
	Warmup int     `yaml:"warmup" class:"r" min:"0" max:"1e12" doc:"steps over which the rate rises from 0 to its peak" absent:"0" eg:"2000"`
	MinLR  float64 `yaml:"min_lr" class:"r" min:"0" max:"3.4e38" doc:"learning rate at the end" absent:"0" eg:"6e-5"`
	Decay  int     `yaml:"decay" class:"r" min:"1" max:"1e12" doc:"steps of the final decay of wsd" absent:"required by wsd" eg:"1000"`
}

// Eval says when validation loss is measured, and on how much data.
type Eval struct {
	Every        int     `yaml:"every" class:"r" min:"0" max:"1e12" doc:"steps between evaluations; 0: only at the end" absent:"0" eg:"250"`
	Batches      int     `yaml:"batches" class:"r" min:"1" max:"1e9" doc:"global batches of validation samples, from the first sample on" eg:"20"`
	Sample       string  `yaml:"sample" class:"r" doc:"prompt of a text that the model continues at the end, with the tokenizer of data.tokenizer" absent:"none" eg:"The light"`
	SampleEvery  int     `yaml:"sample_every" class:"r" min:"0" max:"1e12" doc:"steps between texts that continue sample; 0: only at the end" absent:"0" eg:"1000"`
	SampleTokens int     `yaml:"sample_tokens" alias:"max_new_tokens" class:"r" min:"1" max:"1e9" doc:"tokens that the model adds to sample" absent:"160" eg:"500"`
	Temperature  float64 `yaml:"temperature" class:"r" over:"0" doc:"logits are divided by it before a token is drawn" absent:"0.8" eg:"0.8"`
	TopK         int     `yaml:"top_k" class:"r" min:"1" max:"1e9" doc:"most likely tokens from which one is drawn; 1: always the most likely" absent:"all" eg:"200"`
}

// EarlyStop says when a run ends before its last step.
type EarlyStop struct {
	Metric   string  `yaml:"metric" alias:"monitor" class:"r" enum:"valid_loss" meant:"val_loss=valid_loss,validation_loss=valid_loss,eval_loss=valid_loss" doc:"metric that must improve" absent:"valid_loss with patience, else none" eg:"valid_loss"`
	Patience int     `yaml:"patience" class:"r" min:"1" max:"1e9" doc:"evaluations in a row without an improvement after which the run ends" absent:"3 with metric, else never" eg:"3"`
	MinDelta float64 `yaml:"min_delta" class:"r" min:"0" doc:"smallest decrease of the metric that is an improvement" absent:"0" eg:"0.001"`
}

// Checkpoint says when state is saved.
type Checkpoint struct {
	Every        int     `yaml:"every" class:"r" min:"0" max:"1e12" doc:"steps between checkpoints; 0: not by steps. Without an interval, state is saved only at the end and on request" absent:"0" eg:"1000"`
	EveryMinutes float64 `yaml:"every_minutes" class:"r" over:"0" max:"1e9" doc:"minutes from one checkpoint to the next" absent:"none" eg:"30"`
	EveryEpochs  float64 `yaml:"every_epochs" class:"r" over:"0" max:"1e9" doc:"passes over data.train between checkpoints" absent:"none" eg:"1"`
	Async        bool    `yaml:"async" class:"r" doc:"write checkpoints while training continues, from a copy of the state; false: between two steps" eg:"false"`
	KeepLast     int     `yaml:"keep_last" class:"r" min:"1" max:"1e9" doc:"number of newest checkpoints to keep; older ones are removed" absent:"all" eg:"3"`
	KeepEvery    int     `yaml:"keep_every" class:"r" min:"1" max:"1e12" doc:"with keep_last: checkpoints of multiples of this step are kept too" absent:"none" eg:"10_000"`
	Best         string  `yaml:"best" class:"r" enum:"valid_loss" doc:"metric by which the best checkpoints are saved and kept too" absent:"none" eg:"valid_loss"`
	TopK         int     `yaml:"top_k" class:"r" min:"1" max:"1e9" doc:"with best: number of best checkpoints" absent:"1" eg:"3"`
}

// defaults returns a job before its file is read. Job.complete sets the defaults that depend on other fields.
func defaults() *Job {
	return &Job{
		Data: Data{Tokenizer: "bytes"},
		Train: Train{
			Init: "random", Seed: 1337, OnNonfinite: "skip", OnSpike: "warn", Engine: "planc",
			Optimizer: Optimizer{Kind: "adamw", LR: 3e-4, Betas: [2]float64{0.9, 0.95}, Eps: 1e-8, ClipNorm: 1},
			Schedule:  Schedule{Kind: "constant"},
			Eval:      Eval{Batches: 20}, Checkpoint: Checkpoint{Async: true},
		},
		Objective: Objective{Kind: "throughput", Headroom: 0.1, Prefer: "robust"},
	}
}
