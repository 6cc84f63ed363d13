package search

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes"
)

// precisions are the precisions to draw from: f32, the 16-bit presets, and presets with each field changed.
var precisions = []ir.Precision{
	ir.FullPrecision(ir.F32), ir.FullPrecision(ir.F64), ir.FullPrecision(ir.BF16),
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F16, Params: ir.F16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.BF16, Master: ir.F32, Moments: ir.BF16},
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.BF16, Reduce: ir.BF16, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.BF16, Params: ir.F32, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F16, Params: ir.F32, Grads: ir.F32, Reduce: ir.F16, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F32, Params: ir.BF16, Grads: ir.BF16, Reduce: ir.BF16, Master: ir.BF16, Moments: ir.BF16},
}

// randomCluster draws a small cluster of CPUs or GPUs, on one node or two.
func randomCluster(t testing.TB, r *rand.Rand) *costmodel.Cluster {
	devices := []int{1, 2, 3, 4, 6, 8, 8, 12, 16}[r.IntN(9)]
	kind := []string{"cpu", "cpu", "dgx-h100"}[r.IntN(3)]
	c := *cluster(t, kind, 1, 0)
	c.Nodes, c.Node.Devices, c.Network = 1, devices, nil
	if devices%2 == 0 && r.IntN(3) == 0 { // bytes matter on a slow network, rounds on one with high latency
		c.Nodes, c.Node.Devices = 2, devices/2
		c.Network = []costmodel.Tier{[]costmodel.Tier{{Name: "far", Bandwidth: 1e9, LatencyUS: 20},
			{Name: "slow", Bandwidth: 1e6, LatencyUS: 1}}[r.IntN(2)]}
	}
	if c.Node.Devices == 1 { // no other device to link with
		c.Node.Link, c.Node.SHARP = costmodel.Link{}, false
	}
	return &c
}

// randomProblem draws a small model and a small cluster.
func randomProblem(t testing.TB, r *rand.Rand) *Problem {
	pick := func(vs ...int) int { return vs[r.IntN(len(vs))] }
	heads, seq := pick(2, 4, 8), pick(8, 16, 24)
	var cfg spec.Config
	if r.IntN(2) == 0 {
		cfg = gpt2Config(pick(1, 3, 5), heads*pick(4, 8), heads, pick(61, 64, 257), seq)
		cfg.Tied = r.IntN(2) == 0
		cfg.DropResid, cfg.DropAttn = float64(r.IntN(2))*0.1, float64(r.IntN(2))*0.1
	} else {
		cfg = llamaConfig(pick(1, 3, 5), heads*pick(4, 8), heads, heads/pick(1, 2), heads*pick(8, 16),
			pick(61, 64, 257), seq)
		cfg.Tied = r.IntN(2) == 0
		cfg.AttentionBias = r.IntN(2) == 0
	}
	if r.IntN(2) == 0 {
		if f := families[r.IntN(len(families))]; f.modern == (cfg.Family == spec.Llama) {
			cfg.Family = f.name
			f.change(&cfg)
		}
	}
	if cfg.Family == spec.Llama && r.IntN(3) == 0 {
		cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, pick(4, 6, 8),
			pick(1, 2, 3), cfg.FFN, r.IntN(2) == 0
	}
	p := problem(randomCluster(t, r), cfg, seq, pick(8, 12, 16, 24), precisions[r.IntN(len(precisions))])
	if r.IntN(3) == 0 {
		p.Recipe.Optimizer, p.Recipe.NoMomentum = "sgd", p.GlobalBatch > 12
	}
	if cfg.Experts > 0 && r.IntN(2) == 0 { // some values are only tried on request
		p.Pins = Pins{"schedule": space.Schedules}
	}
	if r.IntN(2) == 0 { // sequences are too short for cp to be tried without a request
		p.Pins = p.Pins.Merge(Pins{"cp": {"1", "2", "4"}})
	}
	return p
}

// drawRecompute draws the recomputation of a plan.
func drawRecompute(r *rand.Rand, p *ir.Plan) {
	p.Recompute = []string{"none", "selective", "full", "full"}[r.IntN(4)]
	p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = 0, 1, false
	if p.Recompute == "none" {
		return
	}
	p.RecomputeLayers = 1 + r.IntN(p.LargestChunk())
	if p.Recompute == "full" && r.IntN(2) == 0 {
		p.RecomputeEvery = 1 + r.IntN(p.RecomputeLayers)
	}
	p.RecomputeSplit = p.TP > 1 && !p.SP && p.RecomputeEvery == 1 && r.IntN(2) == 0
}

// plansOf draws plans of a space. It draws degrees and schedule first, so that combinations with many plans do not
// dominate. It also draws solved values, and values that are only tried on request.
func plansOf(t testing.TB, s *searcher, r *rand.Rand, n int) []ir.Plan {
	t.Helper()
	sp, err := s.space(s.problem)
	if err != nil {
		t.Fatal(err)
	}
	type kind struct {
		dp, tp, pp, cp int
		ep, etp        int
		kind, schedule string
	}
	group := map[kind][]*spaceFamily{}
	var kinds []kind
	for _, f := range sp.families {
		k := kind{f.plan.DP, f.plan.TP, f.plan.PP, f.plan.CP, f.plan.EP, f.plan.ETP, f.plan.CPKind, f.plan.Schedule}
		group[k] = append(group[k], f)
		if len(group[k]) == 1 {
			kinds = append(kinds, k)
		}
	}
	var out []ir.Plan
	for range n {
		fs := group[kinds[r.IntN(len(kinds))]]
		bs := s.branchesOf(s.problem, fs[r.IntN(len(fs))])
		ms := s.membersOf(s.problem, bs[r.IntN(len(bs))])
		m := ms[r.IntN(len(ms))]
		plan := m.plan()
		drawRecompute(r, &plan)
		if plan.PP > 1 && r.IntN(2) == 0 {
			drawStages(r, s, &plan)
		}
		if rs := Legal(plan, s.dims, s.problem.Cluster, s.problem.GlobalBatch); len(rs) > 0 {
			t.Fatalf("%v: %v", plan.Text(), rs)
		}
		out = append(out, plan)
	}
	return out
}

// drawStages moves blocks from some chunks to others.
func drawStages(r *rand.Rand, s *searcher, p *ir.Plan) {
	ns := space.ParseCounts(p)
	for range 3 {
		from, to := r.IntN(len(ns)), r.IntN(len(ns))
		least := 1
		if from == 0 && s.dims.Embed || from == len(ns)-1 && s.dims.Head {
			least = 0
		}
		if ns[from] > least {
			ns[from]--
			ns[to]++
		}
	}
	p.StageLayers = space.JoinCounts(ns)
	p.RecomputeLayers = min(p.RecomputeLayers, p.LargestChunk())
	p.RecomputeEvery = min(p.RecomputeEvery, max(1, p.RecomputeLayers))
}

// What is priced is what runs, in every family.
func TestCompositionOfFamilies(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, f := range families {
		cfg := gpt2Config(3, 16, 4, 61, 8)
		if f.modern {
			cfg = llamaConfig(3, 16, 4, 2, 24, 61, 8)
		}
		cfg.Family = f.name
		f.change(&cfg)
		p := problem(cluster(t, "cpu", 1, 4), cfg, 8, 8, ir.FullPrecision(ir.F32))
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range plansOf(t, s, r, 5) {
			checkComposition(t, s, plan)
		}
		if _, err := Search(p); err != nil {
			t.Errorf("%s: the search says %v", f.name, err)
		}
	}
}

// What is priced is what runs: traffic, flops and memory of a plan, composed from its blocks, equal those of its
// program on every stage.
func TestCompositionIsTheProgram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range draws(48) {
		p := randomProblem(t, r)
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range plansOf(t, s, r, 8) {
			for _, what := range []string{plan.Schedule, "recompute " + plan.Recompute, fmt.Sprint("zero ", plan.Zero),
				fmt.Sprint("pp ", plan.PP), fmt.Sprint("groups ", plan.ZeroGroup > 1 && plan.ZeroGroup < plan.DP)} {
				seen[what]++
			}
			checkComposition(t, s, plan)
		}
	}
	t.Log(seen)
	for _, what := range []string{"none", "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "recompute full",
		"recompute selective", "zero 1", "zero 2", "zero 3", "pp 2", "pp 4", "groups true"} {
		if seen[what] < min(5, draws(9)) {
			t.Errorf("%s was drawn %d times", what, seen[what])
		}
	}
}

func checkComposition(t *testing.T, s *searcher, plan ir.Plan) {
	t.Helper()
	prog, err := passes.Compile(s.problem.Model, plan, s.problem.Recipe, passes.Options{Check: true})
	if err != nil {
		t.Fatalf("%v: %v", plan, err)
	}
	tables := s.tables(plan)
	for stage := range prog.Stages {
		got := s.composition(tables, stage)
		traffic, flops := Compiled(prog, stage)
		if !reflect.DeepEqual(got.Traffic, traffic) {
			t.Errorf("%v stage %d: composed traffic\n%v\nis not the program's\n%v", plan.Text(), stage,
				got.Traffic, traffic)
		}
		if d := got.Flops/flops - 1; d > 1e-12 || d < -1e-12 {
			t.Errorf("%v stage %d: composed %g flops, the program has %g", plan.Text(), stage, got.Flops, flops)
		}
		if !reflect.DeepEqual(tables.Stages[stage].Arena, prog.Stages[stage].Arena) {
			t.Errorf("%v stage %d: composed %v, the program has %v", plan.Text(), stage, tables.Stages[stage].Arena,
				prog.Stages[stage].Arena)
		}
	}
	priced := s.priced(s.candidateOf(plan))
	p := priced.Predict
	arena := prog.ArenaBytes()
	if s.problem.Cluster.IsCPU() {
		arena += prog.Scratch()
	}
	if m := p.MemoryBytes; m.Total-m.Overhead != int64(arena) || priced.Stage != prog.Fullest() {
		t.Errorf("%v: predicted %d on stage %d, the arena of stage %d has %d", plan.Text(), m.Total-m.Overhead,
			priced.Stage, prog.Fullest(), arena)
	}
	if p.FlopsFormula != s.formula {
		t.Errorf("%v: the formula is %q", plan, p.FlopsFormula)
	}
	checkBounds(t, s, plan)
}

// checkBounds checks that no bound of a plan exceeds what it bounds.
func checkBounds(t *testing.T, s *searcher, plan ir.Plan) {
	t.Helper()
	m := s.candidateOf(plan)
	memory, _ := s.candidateMemory(m)
	if plan.RecomputeEvery > 1 && plan.RecomputeLayers < plan.LargestChunk() {
		return // the search does not try it
	}
	arena, time := int(memory.Total-memory.Overhead), s.stepTime(m)
	if v := s.minBytes(&Problem{Pins: Pins{"recompute_split": nil}}, m.family); v > arena {
		t.Errorf("%v: the bound of the family's memory %d exceeds %d", plan.Text(), v, arena)
	}
	if q := s.quote(m); q.bytes != arena || q.time > time {
		t.Errorf("%v: the closed form is %v and %d bytes, the simulation %v and the arena %d", plan.Text(), q.time,
			q.bytes, time, arena)
	}
	if v := s.stepBound(m.family, *m.sharding, m.recompute, m.n, m.order); v > time {
		t.Errorf("%v: the time bound %v exceeds %v", plan.Text(), v, time)
	}
	if v := s.familyBound(m.family, m.recompute, m.n); v > time {
		t.Errorf("%v: the bound of the branch's time %v exceeds %v", plan.Text(), v, time)
	}
	if v := s.familyBound(m.family, &anyRecompute, 0); v > time {
		t.Errorf("%v: the bound of the family's time %v exceeds %v", plan.Text(), v, time)
	}
}

// A dp-partial gradient of replicated K/V heads, and parameters that do not divide evenly.
func TestCompositionOfSplitHeads(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 2, 0), llamaConfig(7, 256, 16, 2, 512, 1001, 64), 64, 32,
		ir.FullPrecision(ir.BF16))
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, plan := range plansOf(t, s, rand.New(rand.NewPCG(7, 7)), 200) {
		if k := fmt.Sprint(plan.TP, plan.SP, plan.Zero); !seen[k] {
			seen[k] = true
			checkComposition(t, s, plan)
		}
	}
}

// Mixed precision has one more region: the master copy.
func TestMasterCopy(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), gpt2Config(2, 64, 4, 64, 16), 16, 16, mixed)
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	plan := ir.SerialPlan(2, 2, mixed)
	plan.DP, plan.Zero, plan.ZeroGroup = 8, 1, 8
	got := s.regions(s.tables(plan), 0)
	if got[ir.RegionMaster] != got[ir.RegionMoment1] || got[ir.RegionMoment1] == 0 {
		t.Errorf("master %d, moments %d", got[ir.RegionMaster], got[ir.RegionMoment1])
	}
	if m, _ := s.candidateMemory(s.candidateOf(plan)); m.Optimizer != int64(3*got[ir.RegionMoment1]) {
		t.Errorf("optimizer %d of %v", m.Optimizer, got)
	}
}

// Gradients that are reduced in a narrower type are rounded before and widened after. That takes time at the end of
// the step and, if they are scattered, after each micro-batch.
func TestCastsTakeTime(t *testing.T) {
	narrow := mixed
	narrow.Reduce = ir.BF16
	p := problem(cluster(t, "dgx-h100", 1, 0), gpt2Config(3, 64, 4, 64, 16), 16, 16, narrow)
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	for zero := range 4 {
		plan := ir.SerialPlan(3, 2, narrow)
		plan.DP, plan.Zero, plan.ZeroGroup = 8, zero, []int{1, 8}[min(1, zero)]
		tab := s.tables(plan)
		st, f := &tab.Stages[0], tab.Stages[0].Update
		got := costmodel.Seconds(0)
		for _, b := range tab.states[0].buckets {
			got += b.Reduce
		}
		if zero >= 2 {
			f, got = st.Resolve, tab.states[0].zeroTimes["block"].scatter
		}
		want := costmodel.Seconds(0)
		for _, n := range f.Nodes {
			moves := n.Op == ir.OpCast || n.Op == ir.OpAllReduce || n.Op == ir.OpReduceScatter
			if moves && (zero < 2 || slices.Contains(tab.LayerBuckets(st, "block", 0), n.Attr.Bucket)) {
				want += s.commTime(tab, n) + s.device.OpTime(n, tab.Mesh)
			}
		}
		if d := float64(got/want) - 1; want == 0 || d > 1e-12 || d < -1e-12 {
			t.Errorf("zero %d: gradients take %v to resolve, want %v", zero, got, want)
		}
	}
}
