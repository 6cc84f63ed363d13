package megatron

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// target returns a target for the job of a script, with a plan of it.
func target(t *testing.T, script, cluster string, change func(p *ir.Plan)) *interop.Target {
	t.Helper()
	q := load(t, importText(t, script, interop.Options{}), cluster)
	problem := q.Problem()
	p := ir.SerialPlan(q.Config.Layers, 1, problem.Precision)
	change(&p)
	return &interop.Target{Plan: p, Job: q.Job, Hardware: q.Hardware}
}

// llama70 is the plan of testdata/llama70.sh.
func llama70(p *ir.Plan) {
	p.DP, p.TP, p.PP, p.SP, p.Zero, p.ZeroGroup = 4, 4, 4, true, 1, 4
	p.MicroBatch, p.MicroBatches, p.Schedule, p.StageLayers, p.AxisOrder = 1, 32, "1f1b", "20,20,20,20", "tp,dp,pp"
}

// script returns testdata/llama70.sh.
func script(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/llama70.sh")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The values of a script's own plan change no byte of it.
func TestValuesOfTheSamePlan(t *testing.T) {
	text := script(t)
	doc := importText(t, text, interop.Options{}).Doc
	for _, v := range Values(target(t, text, "8xdgx-h100", llama70)) {
		if err := doc.Set(v); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(text, string(doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// The values of another plan change these lines of the script.
func TestValuesOfAnotherPlan(t *testing.T) {
	text := script(t)
	doc := importText(t, text, interop.Options{}).Doc
	for _, v := range Values(target(t, text, "8xdgx-h100", func(p *ir.Plan) {
		llama70(p)
		p.DP, p.TP, p.PP, p.VPP, p.Schedule, p.StageLayers = 4, 8, 2, 4, "interleaved", "10,10,10,10,10,10,10,10"
		p.Recompute, p.RecomputeLayers = "full", 3
	})) {
		if err := doc.Set(v); err != nil {
			t.Error(err)
		}
	}
	want := strings.NewReplacer("TP=4", "TP=8", "PP=4", "PP=2").Replace(text)
	want = strings.Replace(want, "${PP}\n", "${PP}\n    --num-virtual-stages-per-pipeline-rank 4\n", 1)
	want = strings.Replace(want, "--overlap-param-gather\n", "--overlap-param-gather --recompute-granularity full "+
		"--recompute-method block --recompute-num-layers 3\n", 1)
	if diff := cmp.Diff(want, string(doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// A layout of stages in a script with multi-token prediction has its layers, which Megatron-LM requires.
func TestLayoutHasPredictedLayers(t *testing.T) {
	for text, want := range map[string]string{
		script(t): "Et*21|t*20|t*20|t*19L",
		strings.Replace(script(t), "--bf16", "--mtp-num-layers 2 --bf16", 1): "Et*21|t*20|t*20|t*19mmL",
	} {
		im := importText(t, text, interop.Options{})
		values := im.Values
		if values == nil {
			values = Values
		}
		for _, v := range values(target(t, text, "8xdgx-h100", func(p *ir.Plan) {
			llama70(p)
			p.StageLayers = "21,20,20,19"
		})) {
			if err := im.Doc.Set(v); err != nil {
				t.Error(err)
			}
		}
		edited := importText(t, string(im.Doc.Bytes()), interop.Options{})
		if f, _ := edited.Field("plan.stage_layers"); f.Value != "[21, 20, 20, 19]" ||
			!strings.Contains(string(im.Doc.Bytes()), want) {
			t.Errorf("%s, want %s:\n%s", f.Value, want, im.Doc.Bytes())
		}
	}
}

// A written script is read as its plan.
func TestWrittenScript(t *testing.T) {
	got, err := Write(target(t, script(t), "8xdgx-h100", llama70))
	if err != nil {
		t.Fatal(err)
	}
	im := importText(t, string(got), interop.Options{})
	before, after := values(importText(t, script(t), interop.Options{})), values(im)
	for path, value := range before {
		if strings.HasPrefix(path, "plan.") && after[path] != value {
			t.Errorf("%s is %s, want %s\n%s", path, after[path], value, got)
		}
	}
	if im.Devices != 64 || im.Env["CUDA_DEVICE_MAX_CONNECTIONS"] != "1" {
		t.Errorf("%d devices, %v", im.Devices, im.Env)
	}
}

// Plans that Megatron-LM cannot express are refused by name.
func TestRefusedPlans(t *testing.T) {
	for _, c := range []struct {
		change func(p *ir.Plan)
		want   string
	}{
		{func(p *ir.Plan) { p.Schedule, p.VPP = "zb-v", 2 }, "plan.schedule: Megatron-LM has no schedule zb-v: use " +
			"1f1b or interleaved (--engine megatron) [NoExport]"},
		{func(p *ir.Plan) { p.Recompute, p.RecomputeLayers, p.RecomputeEvery = "full", 10, 2 },
			"plan.recompute_every: Megatron-LM recomputes groups of 2 layers in all layers or in none, and not in 10 " +
				"of 20: use recompute_every 1 or recompute_layers 20 [NoExport]"},
		{func(p *ir.Plan) { p.Recompute, p.RecomputeLayers = "selective", 10 },
			"plan.recompute_layers: Megatron-LM recomputes selectively in all layers: use recompute_layers 20 " +
				"[NoExport]"},
		{func(p *ir.Plan) { p.Zero = 2 }, "plan.pp: Megatron-FSDP has no pipeline: use pp 1, or zero 1 [NoExport]"},
	} {
		_, err := Write(target(t, script(t), "8xdgx-h100", func(p *ir.Plan) {
			llama70(p)
			c.change(p)
		}))
		if err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
