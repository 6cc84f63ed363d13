package price

import (
	"cmp"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// Traffic is a collective that each rank takes part in Count times per step.
type Traffic struct {
	Op    ir.Op
	Axes  string // of the group, the major one first, joined by "@"
	Ranks int    // of the group
	Bytes int    // of the whole buffer: a rank's operand, or the gathered result
	Count int
}

// trafficKey is what equal collectives have in common.
type trafficKey struct {
	op           ir.Op
	axes         string
	ranks, bytes int
}

// ledger adds up the collectives and flops of a step.
type ledger struct {
	mesh  ir.Mesh
	count map[trafficKey]int
	flops float64 // of one rank
}

func newLedger(m ir.Mesh) *ledger { return &ledger{mesh: m, count: map[trafficKey]int{}} }

// add adds calls of a collective.
func (l *ledger) add(c ir.Collective, times int) {
	axes := make([]string, len(c.Axes))
	for i, a := range c.Axes {
		axes[i] = string(a)
	}
	l.count[trafficKey{c.Op, strings.Join(axes, "@"), c.Ranks(l.mesh), c.Bytes}] += times
}

// addNodes adds runs of some nodes.
func (l *ledger) addNodes(ns []*ir.Node, times int) {
	for _, n := range ns {
		l.flops += float64(float64(times) * n.Flops(l.mesh))
		if c, ok := n.Collective(l.mesh); ok {
			l.add(c, times)
		}
	}
}

// list returns the collectives, sorted.
func (l *ledger) list() []Traffic {
	out := make([]Traffic, 0, len(l.count))
	for k, n := range l.count {
		out = append(out, Traffic{k.op, k.axes, k.ranks, k.bytes, n})
	}
	slices.SortFunc(out, func(a, b Traffic) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Axes, b.Axes), cmp.Compare(a.Bytes, b.Bytes))
	})
	return out
}

// Compiled returns what one rank of a stage does in a step of a compiled program, by walking its schedule: the
// collectives and the flops.
func Compiled(p *ir.Program, stage int) ([]Traffic, float64) {
	w := walker{l: newLedger(p.Mesh), p: p, st: &p.Stages[stage], stage: stage}
	w.run = func(v *ir.Segment, kind ir.ActionKind) {
		w.l.addNodes(map[ir.ActionKind]*ir.Func{ir.Forward: v.Forward, ir.Backward: v.Backward,
			ir.WeightGrad: v.Weights}[kind].Nodes, 1)
	}
	w.walk()
	return w.l.list(), w.l.flops
}

// walker adds up what a stage's passes do.
type walker struct {
	l     *ledger
	p     *ir.Program
	st    *ir.Stage
	stage int
	last  layerID                                       // the layer whose parameters are gathered
	run   func(variant *ir.Segment, kind ir.ActionKind) // adds a function
}

// walk adds a step.
func (w *walker) walk() {
	w.l.addNodes(w.p.Begin.Nodes, 1)
	for _, a := range w.st.Schedule {
		for _, m := range w.p.Messages(w.stage, a) {
			w.l.add(m, 1)
		}
		if a.Kind == ir.Finish {
			w.l.addNodes(w.st.Update.Nodes, 1)
		} else {
			w.pass(a)
		}
	}
}

// layerID identifies a layer; the zero value is none.
type layerID struct {
	segment string
	layer   int
}

// pass adds a pass of a chunk.
func (w *walker) pass(a ir.Action) {
	if a.Kind == ir.WeightGrad {
		w.weightPass(a)
		return
	}
	for _, v := range visits(w.st.Chunks[a.Chunk].Runs, a.Kind) {
		if v.layerID != w.last {
			w.addBuckets(w.st.GatherParams, v.layerID)
		}
		w.last = v.layerID
		s := w.p.Model.Segment(v.segment)
		if v.remat {
			s = s.Remat
		}
		w.run(s, v.kind)
		if v.kind != ir.Backward {
			continue
		}
		if s.Weights != nil && v.group {
			w.run(s, ir.WeightGrad)
		}
		if s.Weights == nil || v.group {
			w.addBuckets(w.st.ScatterGrads, v.layerID)
		}
	}
}

// weightPass adds the second part of a chunk's backward pass. Groups do both parts at once and leave nothing for it.
func (w *walker) weightPass(a ir.Action) {
	for _, run := range w.st.Chunks[a.Chunk].Runs {
		s := w.p.Kind(&run)
		if s.Weights == nil || run.Every > 0 {
			continue
		}
		for k := range run.Count {
			w.run(s, ir.WeightGrad)
			w.addBuckets(w.st.ScatterGrads, layerID{run.Segment, run.From + k})
		}
	}
}

// visit is a function of a layer that a pass runs.
type visit struct {
	layerID
	kind  ir.ActionKind
	remat bool
	group bool // of a group of layers that is recomputed
}

// visits returns the functions of a chunk's pass, in order. The forward passes of a group whose values are not saved
// run again before its backward passes.
func visits(runs []ir.Run, kind ir.ActionKind) []visit {
	var out []visit
	for _, run := range runs {
		for k := range run.Count {
			out = append(out, visit{layerID{run.Segment, run.From + k}, kind, run.Remat, run.Every > 0})
		}
	}
	if kind != ir.Backward {
		return out
	}
	out = out[:0]
	for i := len(runs) - 1; i >= 0; i-- {
		run := runs[i]
		for k := run.Count - 1; k >= 0; k-- {
			if run.Every > 0 && (k == run.Count-1 || (k+1)%run.Every == 0) {
				for g := k - k%run.Every; g <= k; g++ {
					out = append(out, visit{layerID{run.Segment, run.From + g}, ir.Forward, run.Remat, true})
				}
			}
			out = append(out, visit{layerID{run.Segment, run.From + k}, kind, run.Remat, run.Every > 0})
		}
	}
	return out
}

// addBuckets adds a stage's function for the buckets of a layer.
func (w *walker) addBuckets(f *ir.Func, at layerID) {
	if f == nil {
		return
	}
	for _, i := range w.p.LayerBuckets(w.st, at.segment, at.layer) {
		for _, n := range f.Nodes {
			if n.Attr.Bucket == i {
				w.l.addNodes([]*ir.Node{n}, 1)
			}
		}
	}
}

// StateMoves returns what replicas communicate of parameters and gradients in a step of a plan, on the stage with the
// most bytes. It has an entry per kind of collective: Count is their number, and Bytes their sum.
func StateMoves(p *space.Problem, plan ir.Plan) ([]Traffic, error) {
	s, err := New(p)
	if err != nil {
		return nil, err
	}
	t := s.tables(plan)
	var best []Traffic
	largest := -1
	for stage := range t.Stages {
		moves, sum := replicaTraffic(stateTraffic(t, stage), t.Mesh), 0
		for _, m := range moves {
			sum += m.Bytes
		}
		if sum > largest {
			best, largest = moves, sum
		}
	}
	return best, nil
}

// stateTraffic returns a stage's collectives in a step, except those of its layers' functions.
func stateTraffic(t *tables, stage int) []Traffic {
	w := walker{l: newLedger(t.Mesh), p: t.Program, st: &t.Stages[stage], stage: stage,
		run: func(*ir.Segment, ir.ActionKind) {
		}}
	w.walk()
	return w.l.list()
}

// replicaTraffic adds up the collectives of buckets over replicas by kind. It skips those of single numbers, the loss
// and the norm.
func replicaTraffic(all []Traffic, m ir.Mesh) []Traffic {
	const number = 8
	var axes []ir.Axis
	for _, a := range []ir.Axis{"dp", "cp"} {
		if m.Has(a) {
			axes = append(axes, a)
		}
	}
	replicas := m.Expand(axes)
	byOp := map[ir.Op]Traffic{}
	for _, t := range all {
		outside := slices.ContainsFunc(strings.Split(t.Axes, "@"), func(a string) bool {
			return !slices.Contains(replicas, ir.Axis(a))
		})
		if outside || t.Bytes <= number {
			continue
		}
		sum := byOp[t.Op]
		byOp[t.Op] = Traffic{Op: t.Op, Axes: "dp", Ranks: m.Ranks(replicas), Bytes: sum.Bytes + t.Bytes*t.Count,
			Count: sum.Count + t.Count}
	}
	var out []Traffic
	for _, t := range byOp {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Traffic) int { return cmp.Compare(a.Op, b.Op) })
	return out
}
