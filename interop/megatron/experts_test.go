package megatron

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// mixtral is a script of a small model with experts and a balance loss.
const mixtral = small + "--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear " +
	"--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --num-experts 8 " +
	"--moe-router-topk 2 --vocab-size 32000 --moe-aux-loss-coeff 0.01 "

// A script's balance loss is imported with the tokens over which it is computed, and exported as the same loss.
func TestBalanceLossKeepsItsKind(t *testing.T) {
	const option = "--moe-router-load-balancing-type "
	for _, c := range []struct{ options, over, exported string }{
		{"", "micro_batch", "aux_loss"},
		{option + "aux_loss", "micro_batch", "aux_loss"},
		{option + "seq_aux_loss", "sequence", "seq_aux_loss"},
		{option + "global_aux_loss", "", "seq_aux_loss"},
	} {
		fields := values(importText(t, mixtral+c.options, interop.Options{}))
		if fields["train.experts.balance"] != "0.01" || fields["train.experts.over"] != c.over {
			t.Errorf("%q: balance %q over %q, want 0.01 over %q", c.options, fields["train.experts.balance"],
				fields["train.experts.over"], c.over)
		}
		text, err := Write(target(t, mixtral+c.options, "8xh100", func(p *ir.Plan) {
			p.DP, p.MicroBatches, p.MicroBatch, p.MoESlack = 8, 4, 2, 1.25
		}))
		if want := option + c.exported; err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%q: %v\n%s\nlacks %q", c.options, err, text, want)
		}
	}
}

// global_aux_loss is listed with what planc prices instead.
func TestGlobalBalanceLossIsNoted(t *testing.T) {
	im := importText(t, mixtral+"--moe-router-load-balancing-type global_aux_loss", interop.Options{})
	const name = "--moe-router-load-balancing-type"
	const note = "averages the choices over the micro-batches of a step; planc prices a loss over each sequence"
	for _, k := range im.Keys {
		if k.Name == name {
			if k.Use != interop.Unsupported || k.Note != note {
				t.Errorf("%s is %q (%s), want %q (%s)", name, k.Use, k.Note, interop.Unsupported, note)
			}
			return
		}
	}
	t.Errorf("no key %s", name)
}
