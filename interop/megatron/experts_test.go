package megatron

import (
	"fmt"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// mixtral is a script of a small model with experts and a balance loss.
const mixtral = small + "--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear " +
	"--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --num-experts 8 " +
	"--moe-router-topk 2 --vocab-size 32000 --moe-aux-loss-coeff 0.01 "

// Grouped GEMMs of experts run in FP16 too, as Megatron-LM's parser has it on GPUs from Ampere on.
// Source: megatron-core 0.19.2, training/arguments.py: validate_args asks only for compute capability 8.
func TestGroupedGemmRunsInFP16(t *testing.T) {
	text := strings.Replace(mixtral, "--bf16", "", 1) + "--fp16 --moe-grouped-gemm "
	im, err := Import([]interop.File{{Name: "run.sh", Data: []byte(text)}}, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range im.Keys {
		if k.Name == "--moe-grouped-gemm" && k.Use != interop.NoEffect || k.Name == "--fp16" && k.Use != interop.Taken {
			t.Errorf("%s: %s: %s", k.Name, k.Use, k.Note)
		}
	}
	if f, _ := im.Field("train.precision"); f.Value != "fp16" && f.Value != `{compute: fp16}` {
		t.Errorf("train.precision: %q", f.Value)
	}
}

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

// Options of DeepSeek's families are noted in others.
func TestOptionsOfOtherFamiliesAreNoted(t *testing.T) {
	im := importText(t, mixtral+"--mtp-num-layers 1 --moe-router-topk-scaling-factor 2.5 --no-pad-vocab-size",
		interop.Options{})
	got := map[string]string{}
	for _, k := range im.Keys {
		if k.Use == interop.Unsupported {
			got[k.Name] = k.Note
		}
	}
	for name, want := range map[string]string{
		"--mtp-num-layers": "planc has no multi-token prediction in this family: memory and time of its layers are " +
			"missing",
		"--moe-router-topk-scaling-factor": "planc has no such router in this family, which costs the same",
		"--no-pad-vocab-size":              "planc pads the vocabulary to a multiple of 128 · tp",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

// Megatron-LM refuses grouped GEMMs on GPUs before Ampere, and planc writes the option only for later ones.
func TestGroupedGemmNeedsAmpere(t *testing.T) {
	im := importText(t, mixtral+groupedGEMM, interop.Options{})
	without := importText(t, mixtral, interop.Options{})
	const refusal = "run.sh:1:%d: --moe-grouped-gemm needs GPUs of compute capability 8.0 or later, and %s has %s: " +
		"remove it [BadOption]"
	column := len(mixtral) + 1
	for node, want := range map[string]string{
		"v100-32g": fmt.Sprintf(refusal, column, "V100-SXM2-32GB", "sm_70"),
		"t4":       fmt.Sprintf(refusal, column, "T4-16GB", "sm_75"),
		"dgx-a100": "", "rtx-4090": "", "dgx-h100": "", "dgx-b300": "",
	} {
		on := target(t, mixtral, "8x"+node, func(p *ir.Plan) {
			p.DP, p.MicroBatches, p.MicroBatch, p.MoESlack = 8, 4, 2, 1.25
		})
		got := ""
		if err := im.RefusedOn(on.Hardware).Err(); err != nil {
			got = err.Error()
		}
		if got != want || without.RefusedOn(on.Hardware) != nil {
			t.Errorf("%s: %s, want %s", node, got, want)
		}
		text, err := Write(on)
		if err != nil || strings.Contains(string(text), groupedGEMM) != (want == "") {
			t.Errorf("%s: %v\n%s", node, err, text)
		}
	}
}

// FSDP must not have one connection to the GPU.
func TestFSDPNeedsSeveralConnections(t *testing.T) {
	const fsdp = "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params " +
		"--ckpt-format fsdp_dtensor --use-distributed-optimizer --no-gradient-accumulation-fusion"
	const refusal = "CUDA_DEVICE_MAX_CONNECTIONS is 1, which Megatron-LM refuses with --use-megatron-fsdp: remove " +
		"it, or use a larger number [BadOption]"
	const one = "CUDA_DEVICE_MAX_CONNECTIONS=1"
	for script, want := range map[string]string{
		"export " + one + "\n" + small + fsdp:                   "run.sh:1:36: " + refusal,
		one + " " + small + fsdp:                                "run.sh:1:1: " + refusal,
		"export CUDA_DEVICE_MAX_CONNECTIONS=8\n" + small + fsdp: "",
		"export " + one + "\n" + small:                          "",
		small + fsdp:                                            "",
	} {
		_, err := Import([]interop.File{{Name: "run.sh", Data: []byte(script)}}, interop.Options{})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", script, err, want)
		}
	}
}
