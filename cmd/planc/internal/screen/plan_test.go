package screen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// example is a document with the made-up figures of screens.md's first screen.
func example() *Document {
	const g = 1 << 30
	chosen := ir.SerialPlan(32, 1, ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32,
		Master: ir.F32, Moments: ir.F32})
	chosen.DP, chosen.Zero, chosen.ZeroGroup, chosen.MicroBatches, chosen.Recompute, chosen.RecomputeLayers = 8, 2, 8,
		16, "selective", 32
	predict := costmodel.Predict{StepS: 12.2, StepSLow: 11.468, StepSHigh: 12.932, TokensPerS: 85900,
		TokensPerSGPU: 10740, ModelTFLOPS: 587,
		HardwareTFLOPS: 605.6, MFU: 0.593, FlopsFormula: "6N + causal attention", BytesPerParam: 18,
		FitProbability: 0.97,
		Time:           costmodel.Time{Compute: 10.62, Recompute: 0.31, DPComm: 0.61, Optimizer: 0.17, Other: 0.49},
		MemoryBytes: costmodel.Memory{Total: 714 * g / 10, Capacity: 751 * g / 10, Params: 15 * g, Grads: 37 * g / 10,
			Optimizer:   112 * g / 10,
			Activations: 346 * g / 10, Workspace: 31 * g / 10, Comm: 16 * g / 10, Overhead: 22 * g / 10}}
	slower := func(f float64) *float64 { return &f }
	other := func(change func(*ir.Plan), comm costmodel.Seconds, total int64) planner.Alternative {
		a := planner.Alternative{Plan: planner.Plan{Plan: chosen}, Predict: predict}
		change(&a.Plan.Plan)
		a.Predict.Time.TPComm += comm
		a.Predict.MemoryBytes.Total = total
		return a
	}
	tp := other(func(p *ir.Plan) { p.DP, p.TP, p.SP, p.Zero = 4, 2, true, 1 }, 0.52, 66*g)
	tp.SlowerBy = slower(0.041)
	none := other(func(p *ir.Plan) { p.Recompute, p.RecomputeLayers = "none", 0 }, 0, 891*g/10)
	none.NoFit = &search.NoFit{OverBytes: 14 * g, Part: "activations"}
	over := int64(14 * g)
	d := &planner.Document{
		Plan:   planner.Plan{Plan: chosen},
		Model:  planner.ModelSummary{Name: "llama3-8b", Params: 8030261248, ParamsActive: 8030261248, Layers: 32},
		Engine: "planc", Cluster: planner.ClusterSummary{Name: "dgx-h100", GPU: "H100-SXM-80GB", Devices: 8, Nodes: 1},
		Fits:    true,
		Predict: predict,
		Search: planner.SearchSummary{Counts: search.Counts{Space: 38016, Infeasible: 21590, Bounded: 16214,
			Priced: 212},
			Restricted: []string{"recompute_split: true", "cp: where a rank has fewer than 8192 positions"}},
		Alternatives: []planner.Alternative{tp, none},
		Remarks: planner.Remarks{Assumed: []planner.Assumption{
			{Path: "train.optimizer.kind", Value: "adamw", Why: "default"},
			{Path: "node.link.latency_us", Value: "2", Why: "catalogue, not measured"}}},
		Explanation: &planner.Explanation{
			Binding: planner.Binding{Resource: "memory", SlackBytes: 37 * g / 10},
			Choices: []planner.Choice{{Name: "tp", Taken: 1, RunnerUp: 2, Verdict: "slower", SlowerBy: slower(0.041),
				Message: "tp_comm +0.52 s"},
				{Name: "recompute", Taken: "selective", RunnerUp: "none", Verdict: "no_fit", OverBytes: &over,
					Message: "14.0 GiB over: activations"}},
			ErrorBar: planner.ErrorBar{Rows: 61, Like: "H100, dense, one node"},
		},
	}
	return &Document{Document: d, Head: Header{isMemoryMeasured: true, seqLen: 8192, globalBatch: 128,
		precision: "bf16",
		peak:      "989.5 TFLOP/s",
		links:     []string{"NVSwitch 450 GB/s"}, memory: 791 * g / 10, device: "GPU", Rows: DefaultRows,
		command: "planc explain · planc compile -o train"}}
}

// unfitError is the example where memory is short.
func unfit() *Document {
	d := example()
	d.Fits, d.Alternatives = false, nil
	d.Predict.MemoryBytes.Total = 891 << 30 / 10
	return d
}

// priced returns nodes that cost 20 per hour each.
func priced(nodes int) *costmodel.Cluster {
	return &costmodel.Cluster{Nodes: nodes, Node: costmodel.Node{Devices: 8, PricePerHour: 20, Currency: "USD"}}
}

// Screens have the recorded layout; PLANC_UPDATE=1 rewrites testdata.
func TestScreens(t *testing.T) {
	for name, got := range map[string]string{
		"plan": Plan(example()), "unfit": Plan(unfit()), "explain": Explain(example()),
		"nofit": NoPlan("tp 8 · pp 4", unfit().Predict, 0, true, []search.Change{
			{Set: map[string]any{"plan.tp": nil, "plan.zero": nil, "plan.micro_batch": nil},
				Best: search.Priced{Predict: unfit().Predict}, Cluster: priced(4)},
			{Set: map[string]any{"cluster.nodes": 6}, Best: search.Priced{Predict: unfit().Predict},
				Cluster: priced(6)}}, priced(4)),
	} {
		for line := range strings.Lines(got) {
			if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth {
				t.Errorf("%s: %d columns: %q", name, w, line)
			}
		}
		file := filepath.Join("testdata", name+".txt")
		if os.Getenv("PLANC_UPDATE") == "1" {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The screens of scripts are at most 80 columns wide and 45 lines long.
func TestScreensOfScripts(t *testing.T) {
	screens := 0
	for _, script := range []string{"screens", "plan_screen", "explain_screen", "plan_objective", "plan_sweep",
		"clusters", "why_not"} {
		archive, err := txtar.ParseFile(filepath.Join("..", "..", "..", "..", "golden", "script", script+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			text := string(f.Data)
			if strings.Contains(f.Name, ".") || strings.HasPrefix(text, "planc") {
				continue
			}
			screens++
			// the catalogue may be longer
			if n := strings.Count(text, "\n"); n > 45 && script != "clusters" || n < 5 {
				t.Errorf("%s: %s has %d lines", script, f.Name, n)
			}
			for line := range strings.Lines(text) {
				if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth {
					t.Errorf("%s: %s: %d columns: %q", script, f.Name, w, line)
				}
			}
		}
	}
	if screens < 14 {
		t.Errorf("%d screens", screens)
	}
}
