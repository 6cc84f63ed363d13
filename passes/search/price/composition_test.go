package price

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/passes/search/internal/problems"
	"github.com/planc-dev/planc/passes/search/space"
)

// What is priced is what runs, in every family.
func TestCompositionOfFamilies(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, f := range problems.Families {
		cfg := gpt2Config(3, 16, 4, 61, 8)
		if f.Modern {
			cfg = llamaConfig(3, 16, 4, 2, 24, 61, 8)
		}
		cfg.Family = f.Name
		f.Change(&cfg)
		p := problem(cluster(t, "cpu", 1, 4), cfg, 8, 8, ir.FullPrecision(ir.F32))
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range problems.PlansOf(p).Uneven(t, r, 5) {
			checkComposition(t, s, plan)
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
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range problems.PlansOf(p).Uneven(t, r, 8) {
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

// What is priced is what runs if attention does not cross the borders of documents, which the batch then holds.
func TestCompositionOfMaskedDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, family := range []string{spec.GPT2, spec.BERT} {
		cfg := gpt2Config(2, 16, 4, 61, 16)
		cfg.Family, cfg.Bidirectional = family, family == spec.BERT
		p := problem(cluster(t, "cpu", 1, 4), cfg, 8, 8, ir.FullPrecision(ir.F32))
		plain := p.Model
		p.Model = zoo.Build("m", cfg, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.F32, Documents: true})
		if plain.MasksDocuments() || !p.Model.MasksDocuments() {
			t.Errorf("%s: the option masks nothing, or more than it should", family)
		}
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range problems.PlansOf(p).Uneven(t, r, 5) {
			checkComposition(t, s, plan)
		}
	}
}

// composition is what one rank of a stage does in a step of a plan, composed from the profiles of single blocks. It
// equals what [Compiled] returns for the plan's program.
type composition struct {
	traffic []Traffic
	flops   float64
}

// compose composes a stage of a plan: the work of functions comes from their profiles, and how often they run
// from the tables.
func (s *tablePricer) compose(t *tables, stage int) composition {
	w := walker{l: newLedger(t.Mesh), p: t.Program, st: &t.Stages[stage], stage: stage}
	w.run = func(v *ir.Segment, kind ir.ActionKind) {
		f := t.prof.segment(v).function(kind)
		w.l.flops += f.flops
		for _, c := range f.comms {
			c.collective.Axes = c.group.axesOn(t.Mesh, c.collective.Axes)
			w.l.add(c.collective, 1)
		}
	}
	w.walk()
	return composition{traffic: w.l.list(), flops: w.l.flops}
}

func checkComposition(t *testing.T, s *Pricer, plan ir.Plan) {
	t.Helper()
	prog, err := passes.Compile(s.problem.Model, plan, s.problem.Recipe, passes.Options{Check: true})
	if err != nil {
		t.Fatalf("%v: %v", plan, err)
	}
	tables := s.tables(plan)
	for stage := range prog.Stages {
		got := s.compose(tables, stage)
		traffic, flops := Compiled(prog, stage)
		if !reflect.DeepEqual(got.traffic, traffic) {
			t.Errorf("%v stage %d: composed traffic\n%v\nis not the program's\n%v", plan.Text(), stage,
				got.traffic, traffic)
		}
		if d := got.flops/flops - 1; d > 1e-12 || d < -1e-12 {
			t.Errorf("%v stage %d: composed %g flops, the program has %g", plan.Text(), stage, got.flops, flops)
		}
		if !reflect.DeepEqual(tables.Stages[stage].Arena, prog.Stages[stage].Arena) {
			t.Errorf("%v stage %d: composed %v, the program has %v", plan.Text(), stage, tables.Stages[stage].Arena,
				prog.Stages[stage].Arena)
		}
	}
	priced := s.Priced(CandidateOf(plan))
	p := priced.Predict
	checkMemory(t, s, prog, &priced)
	if p.FlopsFormula != s.formula {
		t.Errorf("%v: the formula is %q", plan, p.FlopsFormula)
	}
	checkBounds(t, s, plan)
}

// checkMemory checks the memory of a priced plan against its program.
func checkMemory(t *testing.T, s *Pricer, prog *ir.Program, priced *Priced) {
	t.Helper()
	m, cpu := priced.Predict.MemoryBytes, s.problem.Cluster.IsCPU()
	arena, communicators, fullest, largest := 0, int64(0), 0, -1
	for i := range prog.Stages {
		n, c := prog.Stages[i].ArenaBytes(), communicatorBytes(t, s, prog, i)
		if cpu {
			n += prog.Scratch()
		}
		if need := n + int(c); need > largest {
			arena, communicators, fullest, largest = n, c, i, need
		}
	}
	if m.Total-m.Overhead != int64(arena) || priced.Stage != fullest {
		t.Errorf("%v: predicted %d on stage %d, the arena of stage %d has %d", prog.Plan.Text(), m.Total-m.Overhead,
			priced.Stage, fullest, arena)
	}
	want := costmodel.OverheadParts{}
	if !cpu {
		const buffers = 41 << 20 // constants, feeds, sums, GEMMs
		want = costmodel.OverheadParts{Context: m.OverheadParts.Context, Communicators: communicators,
			Workspaces: buffers + libraryBytes(prog)}
	}
	if m.OverheadParts != want || !cpu && m.Overhead != want.Context+want.Communicators+want.Workspaces {
		t.Errorf("%v: predicted outside the arena are %d bytes, %+v, the program has %+v", prog.Plan.Text(), m.Overhead,
			m.OverheadParts, want)
	}
}

// communicatorBytes returns the bytes of the communicators that a rank of a stage of a program opens. Those of the
// placements are the axes in their default order.
func communicatorBytes(t *testing.T, s *Pricer, prog *ir.Program, stage int) (sum int64) {
	t.Helper()
	plan := prog.Plan
	plan.AxisOrder = "tp,cp,dp,pp"
	mesh, err := plan.Mesh(s.dims.KVHeads, s.problem.Recipe.VocabMultiple)
	if err != nil {
		t.Fatal(err)
	}
	all := ir.Communicators(prog, stage)
	if mesh.Size() > 1 {
		all = append(all, ir.WorldCommunicator(prog.Mesh))
	}
	for i := range all {
		sum += s.problem.Cluster.CommunicatorBytes(mesh, &all[i])
	}
	return sum
}

// libraryBytes returns the bytes of the workspace of a program's attention, and of the FP8 copies of its largest GEMM.
func libraryBytes(prog *ir.Program) int64 {
	attention, fp8 := int64(0), 0
	for _, v := range prog.Model.Variants() {
		for _, f := range v.Funcs() {
			for _, n := range f.Nodes {
				if a, ok := ir.LibraryAttentionOf(n, prog.Mesh); ok {
					attention = max(attention, costmodel.AttentionWorkspace(a, a.Batch))
				}
				if n.Attr.In != "" {
					fp8 = max(fp8, n.Args[0].Type.LocalElems(prog.Mesh)+n.Args[1].Type.LocalElems(prog.Mesh))
				}
			}
		}
	}
	return attention + int64(fp8)
}

// checkBounds checks that no bound of a plan exceeds what it bounds.
func checkBounds(t *testing.T, s *Pricer, plan ir.Plan) {
	t.Helper()
	m := CandidateOf(plan)
	memory, _ := s.candidateMemory(m)
	if plan.RecomputeEvery > 1 && plan.RecomputeLayers < plan.LargestChunk() {
		return // the search does not try it
	}
	need, time := s.arenaCapacity-int(memory.Capacity-memory.Total), s.StepTime(m)
	if v := s.MinBytes(&space.Problem{Pins: space.Pins{"recompute_split": nil}}, m.Family); v > need {
		t.Errorf("%v: the bound of the family's memory %d exceeds %d", plan.Text(), v, need)
	}
	if q := s.quote(m); q.bytes != need || q.time > time {
		t.Errorf("%v: the closed form is %v and %d bytes, the simulation %v and the memory %d", plan.Text(), q.time,
			q.bytes, time, need)
	}
	if v := s.SimulatedBound(m); v > time {
		t.Errorf("%v: the simulation with lower bounds takes %v, the step %v", plan.Text(), v, time)
	}
	if v := s.stepBound(m.Family, *m.Sharding, m.Recompute, m.N, m.Order); v > time {
		t.Errorf("%v: the time bound %v exceeds %v", plan.Text(), v, time)
	}
	if v := s.RecomputeBound(m.Family, m.Recompute, m.N); v > time {
		t.Errorf("%v: the bound of the branch's time %v exceeds %v", plan.Text(), v, time)
	}
	if v := s.FamilyBound(m.Family); v > time {
		t.Errorf("%v: the bound of the family's time %v exceeds %v", plan.Text(), v, time)
	}
}

// Plans on GPUs have communicators, cuDNN's workspace and FP8 copies.
func TestCompositionOnGPUs(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	quantized := mixed
	quantized.FP8 = true
	softcap := llamaConfig(4, 64, 4, 2, 64, 64, 16)
	softcap.AttentionSoftcap = 50
	experts := llamaConfig(4, 64, 4, 2, 64, 64, 16)
	experts.Family, experts.Experts, experts.Choices, experts.ExpertFFN = spec.Mixtral, 4, 2, 64
	seen := map[string]int{}
	for _, cfg := range []spec.Config{gpt2Config(4, 64, 4, 64, 16), softcap, experts} {
		for _, precision := range []ir.Precision{mixed, quantized} {
			for _, nodes := range []int{1, 2} {
				p := problem(cluster(t, "dgx-h100", nodes, 8), cfg, 16, 16, precision)
				p.Pins = space.Pins{"cp": {"1", "2"}}
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				for _, plan := range problems.PlansOf(p).Uneven(t, r, max(4, draws(12))) {
					checkComposition(t, s, plan)
					o := s.Priced(CandidateOf(plan)).Predict.MemoryBytes.OverheadParts
					seen[fmt.Sprint("communicators ", o.Communicators > 0)]++
					seen[fmt.Sprint("workspaces ", o.Workspaces > 41<<20)]++
					seen[fmt.Sprint("cp ", plan.CPKind)]++
				}
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"communicators true", "workspaces true", "workspaces false", "cp ring", "cp gather",
		"cp heads"} {
		if seen[what] == 0 {
			t.Errorf("no plan has %s", what)
		}
	}
}

// A dp-partial gradient of replicated K/V heads, and parameters that do not divide evenly.
func TestCompositionOfSplitHeads(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 2, 0), llamaConfig(7, 256, 16, 2, 512, 1001, 64), 64, 32,
		ir.FullPrecision(ir.BF16))
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, plan := range problems.PlansOf(p).Uneven(t, rand.New(rand.NewPCG(7, 7)), 200) {
		if k := fmt.Sprint(plan.TP, plan.SP, plan.Zero); !seen[k] {
			seen[k] = true
			checkComposition(t, s, plan)
		}
	}
}

// Mixed precision has one more region: the master copy.
func TestMasterCopy(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), gpt2Config(2, 64, 4, 64, 16), 16, 16, mixed)
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	plan := ir.SerialPlan(2, 2, mixed)
	plan.DP, plan.Zero, plan.ZeroGroup = 8, 1, 8
	got := s.regions(s.tables(plan), 0)
	if got[ir.RegionMaster] != got[ir.RegionMoment1] || got[ir.RegionMoment1] == 0 {
		t.Errorf("master %d, moments %d", got[ir.RegionMaster], got[ir.RegionMoment1])
	}
	if m, _ := s.candidateMemory(CandidateOf(plan)); m.Optimizer != int64(3*got[ir.RegionMoment1]) {
		t.Errorf("optimizer %d of %v", m.Optimizer, got)
	}
}

// Gradients that are reduced in a narrower type are rounded before and widened after. That takes time at the end of
// the step and, if they are scattered, after each micro-batch.
func TestCastsTakeTime(t *testing.T) {
	narrow := mixed
	narrow.Reduce = ir.BF16
	p := problem(cluster(t, "dgx-h100", 1, 0), gpt2Config(3, 64, 4, 64, 16), 16, 16, narrow)
	s, err := New(p)
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
			f, got = st.ScatterGrads, tab.states[0].zeroTimes["block"].scatter
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
