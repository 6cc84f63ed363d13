package spec

// Routing is what train.experts says of routers: what they are trained with beside the loss, and whether experts have room
// for all that choose them.
type Routing struct {
	Balance  float64 `yaml:"balance" class:"d" min:"0" doc:"coefficient of each router's balance loss, experts · Σ share of choices · mean score: 1 where even" absent:"the model's" eg:"0.01"`
	RouterZ  float64 `yaml:"z" class:"d" min:"0" doc:"coefficient of the mean square of the log-sum-exp of each router's outputs" absent:"0" eg:"0.001"`
	Over     string  `yaml:"over" class:"d" enum:"sequence,micro_batch,global_batch" doc:"tokens over which experts are balanced: each sequence's; what all replicas handle at once; all of the step's, which must be one micro-batch" absent:"sequence" eg:"sequence"`
	Capacity float64 `yaml:"capacity" class:"d" over:"0" doc:"choices of a sequence that an expert takes, over an even share; others are dropped" absent:"none is dropped" eg:"1.25"`
}

// Groups of tokens.
const (
	OverSequence    = "sequence"
	OverMicroBatch  = "micro_batch"
	OverGlobalBatch = "global_batch"
)
