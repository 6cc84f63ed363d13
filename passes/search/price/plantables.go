package price

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// tables are a plan's program without its functions, which belong to a profile: stages, chunks, buckets, schedules
// and arenas as the passes make them.
type tables struct {
	*ir.Program
	prof   *profile
	states []stageUpdate
}

// tables makes a plan's tables.
func (s *tablePricer) tables(plan ir.Plan) *tables {
	plan.Precision = planPrecision(s.problem, &plan, plan.Zero)
	mesh, err := plan.Mesh(s.dims.KVHeads, s.problem.Recipe.VocabMultiple)
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan has no mesh: %v: %v", plan, err))
	}
	prof := s.profile(keyOf(plan))
	base := prof.prog
	t := &tables{Program: &ir.Program{Name: base.Name, Plan: plan, Mesh: mesh, Recipe: base.Recipe,
		Layouts: base.Layouts, Model: base.Model,
		Stream: base.Stream, Saved: base.Saved}, prof: prof}
	t.run("pipeline")
	t.run("zero")
	t.run("bucket")
	for i := range t.Stages {
		t.states = append(t.states, s.stageUpdate(t, i))
	}
	t.run("schedule")
	n := passes.Needs{Batch: batchRegion(plan, prof), Logits: prof.logits}
	for i := range prof.segs {
		if seg := &prof.segs[i]; t.Uses(seg.variant) {
			n.Work = max(n.Work, seg.work)
		}
	}
	for i := range t.Stages {
		passes.LayoutStage(t.Program, &t.Stages[i], n)
	}
	return t
}

// run runs a pass on the tables.
func (t *tables) run(name string) {
	if err := pass(name).Run(t.Program); err != nil {
		panic(fmt.Sprintf("price: pass %s of a legal plan: %v: %v", name, t.Plan.Text(), err))
	}
}

// pass returns a pass by its name.
func pass(name string) passes.Pass {
	for _, p := range passes.All {
		if p.Name == name {
			return p
		}
	}
	panic("price: there is no pass " + name)
}

// batchRegion returns the bytes of a step's sequences of one replica.
func batchRegion(plan ir.Plan, p *profile) int {
	sum := 0
	for _, row := range p.batchRows {
		sum += roundUp(plan.MicroBatch * plan.MicroBatches * row.size)
	}
	return sum
}

// align is a cache line, as in pass memory.
const align = 64

// roundUp rounds up to a multiple of align.
func roundUp(n int) int { return passes.RoundUp(n, align) }

// regions returns a stage's regions by name, including the master copy if there is one, and the scratch of a CPU
// rank.
func (s *tablePricer) regions(t *tables, stage int) map[string]int {
	r := map[string]int{ir.RegionScratch: t.prof.castScratch}
	for _, a := range t.Stages[stage].Arena {
		r[a.Name] = a.Size
	}
	return r
}

// memory returns what a rank of the fullest stage needs, and that stage.
func (s *tablePricer) memory(t *tables) (m costmodel.Memory, stage int) {
	c, k := CandidateOf(t.Plan), activationMemory{}
	s.measureActivations(&k, c.Family, c.Recompute, c.N, c.scattersEachMicro())
	communicators := s.communicators(&t.Plan, *c.Sharding, s.stateLayout(c.Family, *c.Sharding))
	for i := range t.Stages {
		r := s.regions(t, i)
		outside := k.outside(&stateMemory{communicators: communicators.ofStage(&s.pipelineSplit(c.Family).stages[i])})
		need := s.problem.Cluster.MemoryOf(func(name string) int { return r[name] }, outside, t.Plan.Ranks(),
			s.problem.Headroom)
		if i == 0 || need.Total > m.Total {
			m, stage = need, i
		}
	}
	return m, stage
}
