package runtime

import (
	"testing"

	"github.com/planc-dev/planc/runtime/exit"
)

// Where gradients have 16 bits they do not count choices, so no bias moves by them, whatever is set.
func TestBiasRateWants32Bits(t *testing.T) {
	narrow := map[string]Types{"bf16": {Compute: F32, Params: F32, Grads: BF16, Reduce: BF16, Master: F32,
		Moments: F32}, "fp16": {Compute: F32, Params: F32, Grads: F32, Reduce: F16, Master: F32, Moments: F32}, "": {}}
	for elem, types := range narrow {
		for _, choices := range []int{0, 2} {
			p := bigram[float32](1, 0)
			p.Types, p.Params[1].Choices = types, choices
			_, err := train(t, p, t.TempDir(), Set("train.experts.bias_rate", 0.01), Set("train.steps", 1))
			if elem == "" || choices == 0 {
				must(t, err)
				continue
			}
			wantExit(t, err, exit.Input, "train.experts.bias_rate is 0.01, but the program adds gradients in "+elem+
				", which cannot count experts' choices exactly: use 0, "+
				"or set grads and reduce of train.precision to f32 in the job and compile again")
			_, err = train(t, p, t.TempDir(), Set("train.experts.bias_rate", 0), Set("train.steps", 1))
			must(t, err)
		}
	}
}
