package spec

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Routing is what train.experts says of routers: what they are trained with beside the loss, and whether experts have
// room for all that choose them.
type Routing struct {
	Balance  float64 `yaml:"balance" class:"d" min:"0" doc:"coefficient of each router's balance loss, experts · Σ share of choices · mean score: 1 where even" absent:"the model's" eg:"0.01"`
	RouterZ  float64 `yaml:"z" class:"d" min:"0" doc:"coefficient of the mean square of the log-sum-exp of each router's outputs" absent:"0" eg:"0.001"`
	Over     string  `yaml:"over" class:"d" enum:"sequence,micro_batch,global_batch" doc:"tokens over which experts are balanced: each sequence's; what all replicas handle at once, so that the loss depends on the plan's number of micro-batches; all of the step's, which must be one micro-batch" absent:"sequence" eg:"sequence"`
	BiasRate float64 `yaml:"bias_rate" class:"r" min:"0" doc:"of deepseek_v3: by how much what is added to an expert's score moves a step, up where the expert got less than an even share, down where more; transformers moves nothing, as 0 does" absent:"0.001" eg:"0.001"`
	Capacity float64 `yaml:"capacity" class:"d" over:"0" doc:"choices of a sequence that an expert takes, over an even share; others are dropped" absent:"none is dropped" eg:"1.25"`
}

// biasRate is DeepSeek-V3's for most of its training (its report, section 4.2).
const biasRate = 0.001

// Groups of tokens.
const (
	OverSequence    = "sequence"
	OverMicroBatch  = "micro_batch"
	OverGlobalBatch = "global_batch"
)

// balanced is the balance loss of a config.json. transformers takes it over all layers of what one forward pass sees,
// and does not divide by the choices of a token, which are the balanced loss.
func (s *source) balanced(c *Config, on bool, factor float64) {
	switch {
	case !on:
	case c.Layers > 1:
		s.diags.Addf(s.Root.Get("output_router_logits").Pos, strict.NotYet,
			"output_router_logits: true adds one balance loss over all layers together, which is not there yet; "+
				"false is, and train.experts.balance adds one to each layer")
	default:
		c.Balance, c.Over = factor*float64(c.Choices), OverMicroBatch
	}
}

// routing joins what the job says of routers with what its model says.
func (j *Job) routing(diags *ir.Diags) {
	c, r := j.Config, &j.Train.Experts
	if c == nil {
		return
	}
	if j.Has("train.experts") && c.Experts == 0 {
		diags.Addf(j.Pos("train.experts"), Conflict, "train.experts is given, and %s, of family %s, has no experts",
			c.Name, c.Family)
		return
	}
	switch has := j.Has("train.experts.bias_rate"); {
	case has && !c.RouteBias:
		diags.Addf(j.Pos("train.experts.bias_rate"), Conflict,
			"train.experts.bias_rate is given, and nothing is added to experts' scores in %s, of family %s",
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
			"train.experts.over is global_batch, and backward passes begin before all of the step's tokens have "+
				"chosen: it wants plan.micro_batches: 1, or micro_batch for over")
	}
}
