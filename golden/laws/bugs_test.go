package laws_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// lawBugs are bugs of other systems, by their row in facts.md 4.3, each with plans that show it. Losses, gradients,
// the global norm and parameters are compared with the one-rank program. All copies of a parameter, on replicas and
// on stages that share it, are compared with each other after each step.
var lawBugs = []struct {
	row         int
	what, model string
	drop        float64
	plans       []func(*ir.Plan)
}{
	{1, "a vocabulary that tensor parallelism does not divide", "gpt2", 0, []func(*ir.Plan){tp(2, false), tp(8, true)}},
	{3, "a forward pass that reads parameters before they are gathered", "llama", 0, []func(*ir.Plan){zeroed(1),
		zeroed(2), zeroed(3)}},
	{4, "gradients of queries, keys and values that miss what other parts of the sequence gave", "llama", 0,
		[]func(*ir.Plan){
			parts(2, "gather"), parts(4, "gather"), parts(2, "heads"), parts(2, "ring"), parts(4, "ring")}},
	{5, "a loss that each part of the sequence, or each replica, divides by its own count of unmasked tokens", "gpt2",
		0, []func(*ir.Plan){
			parts(2, "gather"), replicated(2, parts(2, "gather")), replicated(4, parts(2, "heads")),
			replicated(2, parts(4, "ring"))}},
	{6, "gradients of experts off by how many ranks share them, which Adam hides", "mixtral", 0, []func(*ir.Plan){
		split(2, 1, 2, 1, 0), split(4, 1, 2, 1, 0), split(4, 1, 4, 1, 0), split(2, 2, 4, 1, 0), split(2, 2, 1, 2, 0),
		split(2, 2, 2, 2, 0), split(4, 1, 2, 1, 1), split(4, 1, 2, 1, 3)}},
	{7, "a global norm of one shard or stage, tied embeddings counted twice", "llama-tied", 0, []func(*ir.Plan){
		tp(4, true), zeroed(1), zeroed(3), staged(2, "1f1b"), staged(3, "gpipe"), staged(3, "zb-h1"),
		staged(2, "zb-v")}},
	{8, "accumulation that averages means of unequal token counts", "gpt2", 0, []func(*ir.Plan){accumulated(1),
		accumulated(2), accumulated(4)}},
	{12, "a tied embedding that differs between the first and the last stage", "llama-tied", 0, []func(*ir.Plan){
		staged(2, "1f1b"), staged(4, "gpipe"), staged(2, "zb-h1"), staged(2, "zb-v")}},
	{15, "a pipeline that keeps the last micro-batch's gradients alone", "gpt2", 0, []func(*ir.Plan){
		staged(2, "gpipe"), staged(2, "1f1b"), staged(4, "1f1b"), in(1, staged(2, "1f1b")), in(2, staged(2, "1f1b")),
		in(1, staged(2, "zb-h1")), in(2, staged(2, "zb-h1")), in(4, staged(4, "zb-h1")),
		in(1, staged(2, "zb-v")), in(2, staged(2, "zb-v")), in(4, staged(2, "zb-v")), in(8, staged(2, "zb-v"))}},
	{17, "a balance loss that depends on the stages of the pipeline, or on the micro-batches", "mixtral-routed", 0,
		[]func(*ir.Plan){
			staged(2, "1f1b"), staged(4, "gpipe"), staged(2, "zb-h1"), staged(2, "zb-v"), accumulated(2),
			accumulated(8),
			in(8, staged(2, "1f1b")), split(2, 2, 4, 1, 0), parts(2, "gather")}},
	{18, "dropout that each tensor-parallel rank draws for itself", "gpt2", 0.2, []func(*ir.Plan){tp(2, false),
		tp(4, true),
		staged(2, "1f1b")}},
	{18, "latent attention whose heads share keys that tensor parallelism splits", "deepseek_v3", 0.2,
		[]func(*ir.Plan){tp(2, false), tp(4, true), tp(8, false)}},
}

func tp(n int, sp bool) func(*ir.Plan) {
	return func(p *ir.Plan) { p.TP, p.SP, p.MicroBatch, p.MicroBatches = n, sp, 4, 2 }
}

// parts returns a change that splits sequences over cp ranks.
func parts(cp int, kind string) func(*ir.Plan) {
	return func(p *ir.Plan) {
		p.CP, p.CPKind, p.MicroBatch, p.MicroBatches, p.AxisOrder = cp, kind, 2, 4, "tp,cp,dp"
	}
}

func replicated(dp int, plan func(*ir.Plan)) func(*ir.Plan) {
	return func(p *ir.Plan) {
		plan(p)
		p.DP, p.MicroBatch, p.MicroBatches = dp, 1, lawBatch/dp
	}
}

// split returns a change that spreads experts over dp·tp ranks.
func split(dp, tp, ep, etp, zero int) func(*ir.Plan) {
	return func(p *ir.Plan) {
		p.DP, p.TP, p.EP, p.ETP, p.Zero, p.ZeroGroup, p.MicroBatch, p.MicroBatches = dp, tp, ep, etp, zero, 1,
			1, lawBatch/dp
		if zero > 0 {
			p.ZeroGroup = dp
		}
	}
}

func zeroed(zero int) func(*ir.Plan) {
	return func(p *ir.Plan) { p.DP, p.Zero, p.ZeroGroup, p.MicroBatch, p.MicroBatches = 4, zero, 4, 1, 2 }
}

func accumulated(m int) func(*ir.Plan) {
	return func(p *ir.Plan) { p.MicroBatch, p.MicroBatches = lawBatch/m, m }
}

func staged(pp int, schedule string) func(*ir.Plan) {
	return func(p *ir.Plan) {
		p.PP, p.Schedule, p.MicroBatch, p.MicroBatches, p.AxisOrder = pp, schedule, 2, 4, "tp,dp,pp"
		counts := []string{"1", "2", "1"} // of 4 layers: uneven, and none on stages with an embedding or a head
		p.StageLayers = map[int]string{2: "1,3", 3: strings.Join(counts, ","), 4: "0,2,2,0"}[pp]
		if schedule == "zb-v" {
			p.VPP, p.StageLayers = 2, "0,3,1,0"
		}
	}
}

// in returns a change to m micro-batches per step.
func in(m int, plan func(*ir.Plan)) func(*ir.Plan) {
	return func(p *ir.Plan) {
		plan(p)
		p.MicroBatch, p.MicroBatches = lawBatch/m, m
	}
}

func TestLawTellingBugs(t *testing.T) {
	var cases []lawCase
	for n, bug := range lawBugs {
		c := lawCase{group: fmt.Sprintf("bug%d-%s", bug.row, bug.model), optimizer: "sgd", elem: ir.F64,
			model: modelNamed(t, bug.model)}
		c.model.Layers = 4
		c.model.DropEmbd, c.model.DropResid, c.model.DropAttn = bug.drop, bug.drop, bug.drop
		serial := ir.SerialPlan(4, lawBatch, ir.FullPrecision(ir.F64))
		for i, change := range append([]func(*ir.Plan){func(*ir.Plan) {}}, bug.plans...) {
			c.plan = serial
			change(&c.plan)
			c.id = fmt.Sprintf("b%dp%d", n, i)
			cases = append(cases, c)
		}
	}
	runLawCases(t, "bugs", cases)
}

// Row 9: a checkpoint of one plan is resumed with another plan, with its moments, its step and its position in the
// data. Losses before and after, and the final parameters, equal those of one run on one rank.
func TestLawResumeOnAnotherPlan(t *testing.T) {
	plans := []func(*ir.Plan){tp(4, true), zeroed(1), zeroed(2), zeroed(3), staged(2, "1f1b"), staged(4, "gpipe"),
		staged(2, "zb-v"), staged(3, "zb-h1"), accumulated(4)}
	c := lawCase{group: "resume", optimizer: "adamw", elem: ir.F64, model: modelNamed(t, "llama-tied")}
	c.model.Layers = 4
	serial := ir.SerialPlan(4, lawBatch, ir.FullPrecision(ir.F64))
	var cases []lawCase
	add := func(id, before string, change func(*ir.Plan)) {
		c.id, c.before, c.plan = id, before, serial
		change(&c.plan)
		cases = append(cases, c)
	}
	add("r0", "", func(*ir.Plan) {})
	for i, change := range plans {
		add(fmt.Sprintf("r%d", i+1), "", change)
	}
	for i := range plans {
		add(fmt.Sprintf("m%d", i), fmt.Sprintf("r%d", i+1), plans[(i+1)%len(plans)])
		add(fmt.Sprintf("n%d", i), fmt.Sprintf("r%d", i+1), plans[(i+3)%len(plans)])
	}
	runLawCases(t, "resumes", cases)
}

func modelNamed(t *testing.T, name string) lawModel {
	for _, m := range slices.Concat(lawModels(), expertModels(), routedModels()) {
		if m.name == name {
			return m
		}
	}
	t.Fatalf("no model %s", name)
	return lawModel{}
}
