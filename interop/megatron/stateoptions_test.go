package megatron

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// Options of the optimizer's state that planc prices otherwise say so.
func TestStateThatIsPricedOtherwise(t *testing.T) {
	const wide, aware = "--accumulate-allreduce-grads-in-fp32", "--use-precision-aware-optimizer"
	const model = "python x.py --num-layers 8 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 "
	const wideNote = "gradients are accumulated and reduced in fp32, and planc prices fp16: 2 bytes a parameter " +
		"more, and twice the bytes to reduce"
	const awareNote = "with bf16 weights, TransformerEngine keeps 2 of the 4 bytes of a main parameter " +
		"(store_param_remainders); planc prices 4"
	for _, c := range []struct {
		options, key string
		use          interop.Use
		note         string
	}{
		{"--fp16 " + wide, wide, interop.Unsupported, wideNote},
		{"--bf16 " + wide, wide, interop.NoEffect, ""},
		{"--bf16 --use-distributed-optimizer " + aware, aware, interop.Unsupported, awareNote},
		{"--bf16 --use-distributed-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 " + aware, aware,
			interop.Unsupported, awareNote},
		{"--bf16 --use-distributed-optimizer --main-params-dtype fp16 " + aware, aware, interop.Taken, ""},
	} {
		im := importText(t, model+c.options, interop.Options{Devices: 8})
		for _, k := range im.Keys {
			if k.Name == c.key && (k.Use != c.use || k.Note != c.note) {
				t.Errorf("%s: %s, %s", c.options, k.Use, k.Note)
			}
		}
	}
}
