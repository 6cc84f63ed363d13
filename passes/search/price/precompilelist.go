package price

import (
	"cmp"
	"iter"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// The methods in this file say which layers will be needed, so that other cores compile them in advance. Results do not
// depend on it.

// LayerList lists the layers that plans will need, each once, in the order in which the plans were added.
type LayerList struct {
	met  map[profileKey]bool
	list []baseRequest
}

// Add adds the layers of a plan as if nothing were recomputed.
func (l *LayerList) Add(plan ir.Plan) {
	k := baseKey(plan)
	if l.met == nil {
		l.met = map[profileKey]bool{}
	}
	if !l.met[k] {
		l.met[k] = true
		l.list = append(l.list, baseRequest{key: k})
	}
}

// UseHelpers lets up to n other cores compile layers in advance.
func (s *layerProfiler) UseHelpers(n int) { s.precompiler.helpers = min(maxHelpers, n) }

// Helpers returns the number of other cores that may compile layers in advance.
func (s *layerProfiler) Helpers() int { return s.precompiler.helpers }

// Precompile lets helpers compile the listed layers in order, and then those that bounds of families with a split
// backward pass need. It cancels what helpers have not begun.
func (s *layerProfiler) Precompile(p *space.Problem, plain *LayerList) {
	if s.Helpers() > 0 {
		s.precompiler.start(s, withSplitBackward(p, plain.list))
	}
}

// PrecompileRecomputed lets helpers compile the layers of some families with each kind of recomputation for which may
// holds; nil holds for all. Families come with lower bounds of their plans' steps, which decide the order. It cancels
// what helpers have not begun.
func (s *layerProfiler) PrecompileRecomputed(p *space.Problem, families iter.Seq2[*Family, costmodel.Seconds],
	may func(kind string) bool) {
	if s.Helpers() == 0 {
		return
	}
	floors := map[*baseProfile]costmodel.Seconds{}
	var last *baseProfile
	for f, floor := range families {
		b := f.base()
		if least, met := floors[b]; b != last && !met || floor < least {
			floors[b] = floor
		}
		last = b
	}
	s.precompiler.start(s, sortedRecomputeBases(p, floors, may))
}

// LimitPrecompile tells helpers not to begin layers that only plans with longer steps need.
func (s *layerProfiler) LimitPrecompile(step costmodel.Seconds) { s.precompiler.limit(step) }

// StopPrecompile tells helpers not to begin further layers.
func (s *layerProfiler) StopPrecompile() { s.precompiler.stop() }

// withSplitBackward returns the bases that an enumeration needs, in its order, and then those that bounds of families
// with a split backward pass need.
func withSplitBackward(p *space.Problem, plain []baseRequest) []baseRequest {
	var each, apart []baseRequest
	for _, w := range plain {
		if !w.key.splitBackward {
			continue
		}
		apart = append(apart, w)
		w.key.scatterEachMicro = w.key.replicas || w.key.cp > 1
		if w.key.scatterEachMicro {
			each = append(each, w)
		}
	}
	return slices.Concat(plain, each, recomputeBases(p, slices.Concat(apart, each), nil))
}

// recomputeBases returns the bases with each kind of recomputation that a search may use.
func recomputeBases(p *space.Problem, plain []baseRequest, may func(string) bool) (out []baseRequest) {
	for _, w := range plain {
		for _, kind := range []string{"selective", "full"} {
			if p.Pins.Allows("recompute", kind) && (may == nil || may(kind)) {
				w.key.recompute = kind
				out = append(out, w)
			}
		}
	}
	return out
}

// sortedRecomputeBases returns the bases with each kind of recomputation, in the order of the bounds of the plans that
// need them.
func sortedRecomputeBases(p *space.Problem, floors map[*baseProfile]costmodel.Seconds,
	may func(string) bool) (out []baseRequest) {
	for b, floor := range floors {
		out = append(out, baseRequest{b.key, floor})
	}
	out = recomputeBases(p, out, may)
	slices.SortFunc(out, func(a, b baseRequest) int {
		return cmp.Or(cmp.Compare(a.floor, b.floor), cmp.Compare(a.key.experts.ep, b.key.experts.ep),
			cmp.Compare(a.key.tp, b.key.tp))
	})
	return out
}
