package migrate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
)

// A written file has the whole recipe: what planc reads back is the optimizer and the schedule of the job.
func TestExportsHaveTheRecipe(t *testing.T) {
	recipe := []string{"model=llama3-8b", "train.precision=bf16", "train.steps=1000",
		"train.optimizer.betas=[0.8, 0.97]",
		"train.optimizer.weight_decay=0.05", "train.optimizer.eps=1e-7", "train.optimizer.lr=2e-05",
		"train.optimizer.clip_norm=0.5", "train.schedule.warmup=50", "train.schedule.min_lr=1e-06",
		"train.schedule.kind=cosine"}
	for format, engine := range map[string]string{"megatron": "megatron", "bridge": "megatron", "swift": "megatron",
		"hf": "fsdp", "torchtitan": "fsdp"} {
		q := question(t, append([]string{"train.engine=" + engine}, recipe...)...)
		f := formats.Find(format)
		plan, err := Best(f, q, decide(t, q), nil, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := Export(f, q, plan, nil, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		im, err := f.Import([]interop.File{{Name: "job" + f.Ext, Data: out.Text}}, interop.Options{Devices: 8})
		if err != nil {
			t.Errorf("%s: %v\n%s", format, err, out.Text)
			continue
		}
		for _, want := range [][2]string{{"train.steps", "1000"}, {"train.optimizer.betas", "[0.8, 0.97]"},
			{"train.optimizer.weight_decay", "0.05"}, {"train.optimizer.lr", "2e-05"},
			{"train.optimizer.eps", "1e-07"}, {"train.optimizer.clip_norm", "0.5"}, {"train.schedule.warmup", "50"},
			{"train.schedule.min_lr", "1e-06"}, {"train.schedule.kind", "cosine"}} {
			got, _ := im.Field(want[0])
			a, errA := strconv.ParseFloat(got.Value, 64)
			b, errB := strconv.ParseFloat(want[1], 64)
			isSame := got.Value == want[1] || errA == nil && errB == nil && a == b
			// planc does not read the minimum of TrainingArguments, which is in lr_scheduler_kwargs
			isUnread := format == "hf" && (want[0] == "train.schedule.min_lr" || want[0] == "train.schedule.kind")
			if !isSame && !isUnread {
				t.Errorf("%s: %s is %q, want %s\n%s", format, want[0], got.Value, want[1], out.Text)
			}
		}
	}
}

// A script of ms-swift for a job without a number of steps says what to add, and does not train one step.
func TestSwiftWithoutSteps(t *testing.T) {
	const note = "# The job has no number of steps: add --train_iters to ARGS.\n"
	for _, c := range []struct{ set, steps string }{{"train.seed=1", ""}, {"train.steps=1000", "--train_iters 1000\n"},
		{"train.tokens=1e12", "--train_iters "}} {
		q := question(t, "model=llama3-8b", "train.engine=megatron", c.set)
		f := formats.Find("swift")
		plan, err := Best(f, q, decide(t, q), nil, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := Export(f, q, plan, nil, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := string(out.Text)
		hasNote, hasSteps := strings.Contains(text, note), strings.Contains(text, "    --train_iters ")
		if hasNote != (c.steps == "") || hasSteps != (c.steps != "") || !strings.Contains(text, c.steps) {
			t.Errorf("%s:\n%s", c.set, text)
		}
	}
}
