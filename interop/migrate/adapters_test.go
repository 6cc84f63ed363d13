package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// A plan of a file that trains adapters does not fit only if the model's parameters do not. Quantized ones may.
//
// As full training on one GPU, PyTorch keeps 18 bytes per parameter: FP32 parameters, gradients and two moments, and
// autocast's 16-bit copies. Adapters need at least the parameters in 16 bits and the CUDA context, 1.5 GiB: parameters
// that are not trained have no gradients, buckets, moments or FP32 copies.
func TestAdaptersDecideWhetherAPlanFits(t *testing.T) {
	const arguments = "per_device_train_batch_size: 1\nbf16: true\n"
	const trains = " The file trains adapters, such as LoRA's ("
	const rest = "), which planc does not price yet: step time and memory are those of full training."
	const unknown = "This plan is legal, and whether it fits is not known. As full training it is "
	for _, c := range []struct {
		key, model, message string
		verdict             planner.CheckVerdict
	}{
		// 71.2 GiB + 71.7 GiB: 134.6 for 18 bytes of each of 8.03 B parameters, and activations of 1,024 tokens;
		// 16.5 GiB: 15.0 for 2 bytes of each, and the context
		{"use_peft: true", "llama3-8b", unknown + "71.7 GiB over, in the forward pass of the first step; what stays " +
			"on the device needs at least 16.5 GiB of 71.2 GiB." + trains + "use_peft true" + rest,
			planner.CheckUnpriced},
		// 132.9 GiB: 131.4 for 2 bytes of each of 70.55 B parameters, and the context
		{"use_peft: true", "llama3-70b", "This plan is legal and does not fit, also with adapters: what stays on " +
			"the device needs at least 132.9 GiB of 71.2 GiB." + trains + "use_peft true" + rest, planner.CheckNoFit},
		// the parameters may have few bits each: only the context is certain
		{"load_in_4bit: true", "llama3-70b", unknown + "1.12 TiB over, in the forward pass of the first step; " +
			"what stays on the device needs at least 1.5 GiB of 71.2 GiB." + trains + "load_in_4bit true" + rest,
			planner.CheckUnpriced},
		{"use_peft: false", "llama3-70b", "This plan is legal and does not fit: 1.12 TiB over, in the forward " +
			"pass of the first step.", planner.CheckNoFit},
		{"use_peft: true", "gpt2-124m", "This plan is legal, fits, and is 146.6 % slower than the best that engine " +
			"fsdp can run." + trains + "use_peft true" + rest, planner.CheckFine},
	} {
		files := []interop.File{{Name: "a.yaml", Data: []byte(arguments + c.key + "\n")}}
		r := reportOf(t, files, noFiles, onH100([]string{"model=" + c.model, "cluster.devices=1", "cluster.nodes=1",
			"train.seq_len=1024", "train.global_batch=8"}))
		if r.Verdict != c.verdict || r.Message != c.message {
			t.Errorf("%s, %s: %s, %s", c.key, c.model, r.Verdict, r.Message)
		}
	}
}
