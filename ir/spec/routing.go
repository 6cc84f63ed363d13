package spec

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Routing holds the settings of train.experts: the losses that train routers, and whether experts drop tokens.
type Routing struct {
	Balance  float64 `yaml:"balance" class:"d" min:"0" doc:"coefficient of each router's load-balancing loss: experts · Σ share of choices · mean score, which is 1 at balance" absent:"the model's" eg:"0.01"`
	RouterZ  float64 `yaml:"z" alias:"z_loss" class:"d" min:"0" doc:"coefficient of the router z-loss: the mean square of the log-sum-exp of each router's outputs" absent:"0" eg:"0.001"`
	Over     string  `yaml:"over" class:"d" enum:"sequence,micro_batch,global_batch" doc:"tokens over which the balancing loss is computed: those of each sequence; those that all replicas process at once, so that the loss depends on the plan's number of micro-batches; all of the step's, which must be one micro-batch" absent:"sequence" eg:"sequence"`
	BiasRate float64 `yaml:"bias_rate" class:"r" min:"0" doc:"deepseek_v3: step size of the bias that is added to an expert's score: up if the expert got less than its even share, down if more; 0 keeps the biases fixed, as transformers does" absent:"0.001" eg:"0.001"`
	Capacity float64 `yaml:"capacity" alias:"capacity_factor" class:"d" over:"0" doc:"capacity factor: choices of a sequence that an expert accepts, over its even share; the rest is dropped" absent:"none is dropped" eg:"1.25"`
}

// biasRate is the value for most of DeepSeek-V3's training (technical report, section 4.2).
const biasRate = 0.001

// Values of train.experts.over.
const (
	OverSequence    = "sequence"
	OverMicroBatch  = "micro_batch"
	OverGlobalBatch = "global_batch"
)

// balanced reads the balance loss of a config.json. transformers computes it over all layers in one forward pass, and
// does not divide by the number of choices per token, which is its value at balance.
func (s *source) balanced(c *Config, on bool, factor float64) {
	switch {
	case !on:
	case c.Layers > 1:
		s.diags.Addf(s.Root.Get("output_router_logits").Pos, strict.NotYet,
			"output_router_logits: true adds one balance loss over all layers together, which is not supported "+
				"yet: use false, and train.experts.balance, which adds a loss for each layer")
	default:
		c.Balance, c.Over = factor*float64(c.Choices), OverMicroBatch
	}
}

// routing combines the job's settings of routers with those of its model.
func (j *Job) routing(diags *ir.Diags) {
	c, r := j.Config, &j.Train.Experts
	if c == nil {
		return
	}
	if j.Has("train.experts") && c.Experts == 0 {
		diags.Addf(j.Pos("train.experts"), Conflict,
			"train.experts is given, but %s, of family %s, has no experts: remove it",
			c.Name, c.Family)
		return
	}
	switch has := j.Has("train.experts.bias_rate"); {
	case has && !c.RouteBias:
		diags.Addf(j.Pos("train.experts.bias_rate"), Conflict,
			"train.experts.bias_rate is given, but %s, of family %s, adds no bias to experts' scores: remove it",
			c.Name, c.Family)
	case !has && c.RouteBias:
		r.BiasRate = biasRate
	}
	if !j.Has("train.experts.balance") {
		r.Balance = c.Balance
	}
	if !j.Has("train.experts.over") {
		r.Over = c.Over
	}
	c.Routing = *r
	if one := j.Plan.MicroBatches.Values; r.Over == OverGlobalBatch && (len(one) != 1 || one[0] != 1) {
		diags.Addf(j.Pos("train.experts.over"), Conflict,
			"train.experts.over is global_batch, but a backward pass starts before all tokens of the step have "+
				"chosen: use plan.micro_batches: 1, or over: micro_batch")
	}
}
