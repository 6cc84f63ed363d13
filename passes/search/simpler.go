package search

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Alike is by how much of a step a plan may be slower than the chosen one and still be named because it is simpler: less than
// the cost model can tell two plans apart by. It chooses nothing: what is chosen is the fastest (see the package's ties).
const Alike = 0.01

// Simpler is the best plan with a value of one key, and simpler than the chosen one.
type Simpler struct {
	Alternative
	Key, Value string // that pinned, the search finds it
}

// Simpler is, of the alternatives that are at most [Alike] slower than the chosen plan, the simplest that is simpler than it; ok
// is false if there is none.
func (r *Result) Simpler() (s Simpler, ok bool) {
	least := parts(&r.Best.Plan)
	for _, a := range r.Alternatives {
		own := parts(&a.Plan)
		if a.NoFit != nil || a.SlowerBy > Alike || !simpler(own, parts(&r.Best.Plan)) || slices.Compare(own, least) >= 0 {
			continue
		}
		if a.key == "axis_order" { // of which only the chosen degrees' were asked for: pinned, the search may find another plan
			continue
		}
		least, ok = own, true
		s = Simpler{Alternative: a, Key: a.key, Value: keyValues(a.Plan)[a.key]}
	}
	return s, ok
}

// simpler tells whether a plan's parts are nowhere more than another's, and somewhere less.
func simpler(a, b []int) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return !slices.Equal(a, b)
}

// parts are what people have to understand of a plan, each as a number that is the larger the more there is of it. Of two plans
// the one with less of the first that differs is the simpler.
func parts(p *ir.Plan) []int {
	return []int{p.PP, p.VPP, bit(p.Splits()), p.TP, p.CP, p.EP, p.ETP, bit(p.SP), p.Zero, bit(p.Zero > 0 && p.ZeroGroup < p.Replicas()), bit(p.Recompute != "none")}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
