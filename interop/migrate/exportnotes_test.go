package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// An export notes the parts of its plan for which the format has no key, and what the training code must do instead.
func TestExportNotesWhatTheCodeMustDo(t *testing.T) {
	for _, c := range []struct{ format, sets, want string }{
		{"deepspeed", "plan.zero=1 plan.recompute=full",
			"format deepspeed has no key that says recompute full 1 block: the model's code switches recomputation " +
				"on: model.gradient_checkpointing_enable()"},
		{"deepspeed", "plan.zero=1 plan.tp=2 plan.sp=false plan.recompute=none", ""},
		{"megatron", "plan.tp=2 plan.sp=true plan.recompute=full", ""},
	} {
		f, err := FormatOf(c.format)
		if err != nil {
			t.Fatal(err)
		}
		q := question(t, append(strings.Fields(c.sets), "train.engine="+c.format)...)
		out, err := Export(f, q, decide(t, q), nil, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		notes := slices.DeleteFunc(out.Notes, func(note string) bool { return !strings.HasPrefix(note, "format ") })
		if got := strings.Join(notes, "\n"); got != c.want {
			t.Errorf("%s %s: %q", c.format, c.sets, got)
		}
	}
}

// A model that a format does not have is refused without a plan: no plan of it can be exported.
func TestExportOfOtherModelNamesNoPlan(t *testing.T) {
	q := question(t, "model=mixtral-8x7b", "cluster.nodes=4", "train.engine=fsdp", "train.seq_len=4096",
		"train.global_batch=256")
	f, err := FormatOf("torchtitan")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Export(f, q, decide(t, q), nil, interop.Options{})
	const want = "model: torchtitan 0.2 has no model like mixtral: it has llama3, qwen3 and deepseek_v3 [CannotExpress]"
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}
