package laws_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// expertModels returns models with experts in every block: few or many per token, shared experts, weights that are
// normalized or not.
func expertModels() []lawModel {
	base := spec.Config{Vocab: 59, Hidden: 16, Layers: 3, Heads: 8, KVHeads: 2, HeadDim: 4, FFN: 24, MaxPositions: 32,
		Activation: "silu", NormEps: 1e-5, InitStd: 0.2, RopeTheta: 10000, Experts: 4, Choices: 2, ExpertFFN: 8,
		RouteScale: 1}
	mixtral, qwen2, qwen3 := base, base, base
	mixtral.Family, mixtral.RouteShare = spec.Mixtral, true
	qwen2.Family, qwen2.QKVBias, qwen2.SharedFFN, qwen2.SharedGate, qwen2.Choices = spec.Qwen2MoE, true, 16, true, 3
	qwen3.Family, qwen3.QKNorm, qwen3.Experts, qwen3.RouteShare = spec.Qwen3MoE, true, 8, true
	v2, v3 := base, base
	for _, c := range []*spec.Config{&v2, &v3} { // dense blocks before the blocks with experts
		c.KVHeads, c.HeadDim, c.KVLatent, c.PlainDim, c.RotaryDim, c.VDim, c.RotaryNext = 8, 6, 10, 2, 4, 3, true
		c.Dense, c.Experts, c.SharedFFN, c.RouteScale, c.QueryScale = 1, 8, 8, 1.5, 0.5
	}
	v2.Family, v2.Groups, v2.BestGroups = spec.DeepseekV2, 4, 2
	v3.Family, v3.QLatent, v3.Groups, v3.BestGroups, v3.RouteGate, v3.RouteShare, v3.RouteBias, v3.Dense =
		spec.DeepseekV3, 12, 2, 1, "sigmoid", true, true, 2
	return []lawModel{{name: "mixtral", Config: mixtral}, {name: "qwen2_moe", Config: qwen2},
		{name: "qwen3_moe", Config: qwen3}, {name: "deepseek_v2", Config: v2}, {name: "deepseek_v3", Config: v3}}
}

// expertPlans are plans in short notation, one per row.
var expertPlans = []string{
	"dp 2", "dp 2 slack 1", "slack 1", "slack 1.5 micro 2", "tp 2", "tp 2 sp slack 1", "tp 2 sp ep 2", "dp 2 ep 2",
	"dp 2 ep 2 slack 1", "dp 2 tp 2 ep 4", "dp 2 tp 2 sp ep 4 slack 1.25",
	"dp 2 tp 2 etp 2", "dp 2 tp 2 etp 2 ep 2 slack 1", "tp 2 etp 2 sp", "dp 4 ep 2", "dp 4 ep 2 zero 1",
	"dp 4 ep 2 zero 2 slack 1", "dp 4 ep 2 zero 3", "dp 4 ep 4 zero 1", "dp 4 tp 2 ep 4 zero 1 sp",
	"dp 2 pp 2 ep 2 slack 1", "dp 2 pp 3 ep 2 zb-h1", "dp 2 pp 2 ep 2 full", "dp 2 ep 2 full slack 1",
	"dp 2 tp 2 sp ep 4 selective", "dp 2 pp 2 ep 2 zero 2 zb-h1", "tp 4 etp 2 ep 2", "dp 2 tp 2 etp 2 ep 2 first",
	"dp 4 tp 2 ep 4 first slack 1.5", "dp 2 tp 2 ep 4 zero 1 between pp 2", "dp 2 tp 2 etp 2 zero 2",
	"cp 2 gather ep 2", "dp 2 cp 2 gather ep 4 slack 1", "cp 2 heads tp 2 etp 2 ep 2 sp",
	"dp 2 cp 2 gather ep 2 zero 1", "dp 2 tp 4 ep 2 first zero 2 sp", "dp 4 tp 2 ep 4 first zero 3 sp slack 1.25",
	"dp 2 cp 2 ring slack 1", "cp 2 ring ep 2", "dp 2 cp 2 ring ep 4 slack 1.25", "cp 4 ring ep 4 full",
	"tp 2 cp 2 ring ep 4 sp slack 1", "cp 2 ring tp 2 etp 2 ep 2", "dp 2 cp 2 ring ep 2 zero 1",
	"dp 2 cp 2 ring tp 2 ep 2 zero 3 sp", "cp 2 ring pp 2 ep 2 zb-h1 slack 1", "cp 4 ring selective slack 1.5",
	"dp 2 ep 2 full every 2 slack 1", "tp 2 sp ep 2 full every 3 slack 1", "dp 2 pp 2 ep 2 full every 2 slack 1",
}

// expertPlan parses a row of expertPlans.
func expertPlan(text string, layers int) ir.Plan {
	p := ir.SerialPlan(layers, 1, ir.FullPrecision(ir.F64))
	p.EP, p.ETP = 1, 1
	words := strings.Fields(text)
	for i, w := range words {
		number := func(to *int) { fmt.Sscan(words[i+1], to) }
		switch w {
		case "dp":
			number(&p.DP)
		case "tp":
			number(&p.TP)
		case "pp":
			number(&p.PP)
			p.Schedule, p.AxisOrder = "1f1b", p.AxisOrder+",pp"
			p.StageLayers = map[int]string{2: "2,1", 3: "1,1,1"}[p.PP]
		case "ep":
			number(&p.EP)
		case "etp":
			number(&p.ETP)
		case "zero":
			number(&p.Zero)
			p.ZeroGroup = p.DP * p.CP
		case "micro":
			number(&p.MicroBatch)
		case "slack":
			fmt.Sscan(words[i+1], &p.MoESlack)
		case "cp":
			number(&p.CP)
			p.CPKind, p.AxisOrder = words[i+2], "tp,cp,dp"
		case "sp":
			p.SP = true
		case "zb-h1":
			p.Schedule = w
		case "first": // dp varies fastest
			p.AxisOrder = "dp,tp"
		case "between":
			p.AxisOrder = "tp,pp,dp"
		case "full", "selective":
			p.Recompute, p.RecomputeLayers = w, 1
		case "every":
			number(&p.RecomputeEvery)
			p.RecomputeLayers = p.LargestChunk()
		}
	}
	p.MicroBatches = lawBatch / p.DP / p.MicroBatch
	return p
}

// Plans of models with experts train as one rank does. In the short run each plan uses one of the models. Gradients
// are compared too, because an optimizer that divides by their magnitude hides a factor.
func TestLawExperts(t *testing.T) {
	t.Parallel() // one test generates or runs code while another compiles
	var cases []lawCase
	for i, m := range expertModels() {
		if want := os.Getenv("PLANC_MODEL"); !strings.HasPrefix(m.name, want) {
			continue
		}
		opt := []string{"sgd", "adamw"}[i%2]
		c := lawCase{group: m.name + "-" + opt, model: m, optimizer: opt, elem: ir.F64,
			plan: ir.SerialPlan(m.Layers, lawBatch, ir.FullPrecision(ir.F64))}
		c.id = fmt.Sprintf("x%dref", i)
		cases = append(cases, c)
		for j, text := range expertPlans {
			if want := os.Getenv("PLANC_EXPERTS"); want != "" && want != text ||
				want == "" && !harness.Long() && j%5 != i {
				continue
			}
			c.plan, c.id = expertPlan(text, m.Layers), fmt.Sprintf("x%dp%d", i, j)
			cases = append(cases, c)
		}
	}
	runLawCases(t, "experts", cases)
}
