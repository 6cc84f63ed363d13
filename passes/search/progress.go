package search

import "github.com/planc-dev/planc/costmodel"

// watchEvery is the number of steps between two reports: bounds of families, or families listed.
const watchEvery = 1 << 10

// watch reports the progress of an enumeration.
func (e *enumeration) watch() {
	if n := len(e.out.families); e.s.watch != nil && n%watchEvery == 0 {
		e.s.watch(Progress{Families: n})
	}
}

// watch reports the progress of a search. Only the first search reports; those for alternatives find nothing better.
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
