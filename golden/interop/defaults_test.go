package interop_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/tree"
)

// withDefaults returns a file of a format for a drawn plan, in which keys that may be absent have their defaults.
func withDefaults(t *testing.T, d *draw, f *interop.Format, syntax tree.Syntax) []byte {
	t.Helper()
	var list []interop.Value
	for _, v := range f.Values(d.target()) {
		if v.IsAbsent && v.Default != "" {
			v.IsAbsent, v.Text = false, v.Default
		}
		list = append(list, v)
	}
	text, err := tree.Write(syntax, list)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A key with its default says the same to DeepSpeed as an absent one: edits write defaults instead of deleting lines.
func TestDeepSpeedReadsDefaults(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "deepspeed")
	r := rand.New(rand.NewPCG(24, 31))
	for range amount(300) {
		d, _ := drawExpressed(t, r, &deepspeed.Format, "deepspeed")
		text := withDefaults(t, d, &deepspeed.Format, tree.JSON)
		got, refusal := askDeepSpeed(t, o, string(text), d.plan.DP)
		if refusal != "" {
			t.Fatalf("%s\n%s\n%s", d, refusal, text)
		}
		if diff := cmp.Diff(dsWant(&d.plan), got); diff != "" {
			t.Fatalf("%s\n%s\n%s", d, diff, text)
		}
		samePins(t, d, &deepspeed.Format, text, "tp", "cp", "ep", "etp", "zero", "micro_batch", "micro_batches")
	}
}

// A key with its default says the same to Accelerate as an absent one.
func TestAccelerateReadsDefaults(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "accelerate")
	r := rand.New(rand.NewPCG(24, 32))
	for engine, pins := range pinsOf {
		for range amount(100) {
			d, _ := drawExpressed(t, r, &accelerate.Format, engine)
			text := withDefaults(t, d, &accelerate.Format, tree.YAML)
			got, refusal := askAccelerate(t, o, string(text))
			if refusal != "" {
				t.Fatalf("%s\n%s\n%s", d, refusal, text)
			}
			maps.Copy(got.Env, got.DeepSpeed)
			for name, want := range settings(d) {
				if got.Env[name] != want {
					t.Fatalf("%s\n%s is %q, want %q\n%s", d, name, got.Env[name], want, text)
				}
			}
			samePins(t, d, &accelerate.Format, text, pins...)
		}
	}
}
