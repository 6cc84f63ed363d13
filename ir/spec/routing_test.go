package spec

import (
	"strings"
	"testing"
)

const routed = "model: {base: qwen3-30b-a3b, num_hidden_layers: 1}\ntrain: {seq_len: 64, global_batch: " +
	"8}\ncluster: 4xcpu\n"

// What the job says of routers wins over what its model says; transformers' loss of one layer is k times the balanced
// one.
func TestRouting(t *testing.T) {
	for _, c := range []struct {
		sets string
		want Routing
	}{
		{"", Routing{}},
		{"model.output_router_logits=true model.router_aux_loss_coef=0.01", Routing{Balance: 0.08,
			Over: OverMicroBatch}},
		{"model.output_router_logits=true train.experts.over=sequence train.experts.z=0.5", Routing{Balance: 0.008,
			RouterZ: 0.5, Over: OverSequence}},
		{"train.experts.balance=0.02 train.experts.capacity=1.5", Routing{Balance: 0.02, Capacity: 1.5}},
		{"train.experts.balance=0.02 train.experts.over=global_batch plan.micro_batches=1", Routing{Balance: 0.02,
			Over: OverGlobalBatch}},
		{"model=deepseek-v3", Routing{BiasRate: 0.001}},
		{"model=deepseek-v3 train.experts.bias_rate=0", Routing{}},
	} {
		j, err := tryLoad(routed, strings.Fields(c.sets)...)
		if err != nil {
			t.Errorf("%s: %v", c.sets, err)
			continue
		}
		if j.Config.Routing != c.want || j.Train.Experts != c.want {
			t.Errorf("%s: %+v and %+v, want %+v", c.sets, j.Config.Routing, j.Train.Experts, c.want)
		}
		decided := strings.Contains(string(j.Decides()), "train.experts.")
		if rate := (Routing{BiasRate: c.want.BiasRate}); decided != (c.want != rate) {
			t.Errorf("%s: of what decides the plan, experts are %v", c.sets, decided)
		}
	}
}

func TestRoutingIsRefused(t *testing.T) {
	for sets, want := range map[string]string{
		"model=gpt2-124m train.experts.balance=0.1":                 "has no experts",
		"train.experts.over=global_batch train.experts.balance=0.1": "plan.micro_batches: 1",
		"model.num_hidden_layers=2 model.output_router_logits=true": "train.experts.balance, which adds a loss for " +
			"each layer",
		"train.experts.bias_rate=0.1": "adds no bias to experts' scores",
		"train.experts.capacity=0":    "train.experts.capacity",
		"train.experts.over=replica":  "micro_batch",
	} {
		if _, err := tryLoad(routed, strings.Fields(sets)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", sets, err, want)
		}
	}
}
