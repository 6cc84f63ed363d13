package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// A plan of a file that trains adapters does not fit only if the model's parameters do not. Quantized ones may.
func TestAdaptersDecideWhetherAPlanFits(t *testing.T) {
	const arguments = "per_device_train_batch_size: 1\nbf16: true\n"
	const trains = " The file trains adapters, such as LoRA's ("
	const rest = "), which planc does not price yet: step time and memory are those of full training."
	const unknown = "This plan is legal, and whether it fits is not known. As full training it is "
	for _, c := range []struct {
		key, model, message string
		verdict             planner.CheckVerdict
	}{
		{"use_peft: true", "llama3-8b", unknown + "71.7 GiB over, in the forward pass of the first step; what stays " +
			"on the device needs at least 17.5 GiB of 71.2 GiB." + trains + "use_peft true" + rest,
			planner.CheckUnpriced},
		{"use_peft: true", "llama3-70b", "This plan is legal and does not fit, also with adapters: what stays on " +
			"the device needs at least 140.6 GiB of 71.2 GiB." + trains + "use_peft true" + rest, planner.CheckNoFit},
		{"load_in_4bit: true", "llama3-70b", unknown + "1.12 TiB over, in the forward pass of the first step; " +
			"what stays on the device needs at least 9.2 GiB of 71.2 GiB." + trains + "load_in_4bit true" + rest,
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
