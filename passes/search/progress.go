package search

import "github.com/planc-dev/planc/costmodel"

// Progress is how far a search is.
type Progress struct {
	// families of plans that had their turn, 0 while they are listed; and how many there are
	Done, Families int
	Best           costmodel.Seconds // the step of the best plan so far, 0 while there is none
}

// watchEvery is after how much it is said again how far a search is: bounds of families, or families listed.
const watchEvery = 1 << 10

// watch says how far an enumeration is.
func (e *enumeration) watch() {
	if n := len(e.out.families); e.s.watch != nil && n%watchEvery == 0 {
		e.s.watch(Progress{Families: n})
	}
}

// watch says how far a hunt is, the first alone: those for alternatives look at plans that are no better.
func (h *bestFirst) watch() {
	h.steps++
	if h.s.watch == nil || h.steps%watchEvery != 0 {
		return
	}
	p := Progress{Done: len(h.space.families) - len(h.pending), Families: len(h.space.families)}
	if len(h.fits) > 0 {
		p.Best = costmodel.Seconds(costmodel.SixDigits(float64(h.fastest)))
	}
	h.s.watch(p)
}
