package search

import "github.com/planc-dev/planc/costmodel"

// Progress is how far a search is.
type Progress struct {
	// families of plans that had their turn, 0 while they are listed; and how many there are
	Done, Families int
	Best           costmodel.Seconds // the step of the best plan so far, 0 while there is none
}

// often is after how much it is said again how far a search is: bounds of families, or families listed.
const often = 1 << 10

// watch says how far an enumeration is.
func (e *enumeration) watch() {
	if n := len(e.out.families); e.s.watch != nil && n%often == 0 {
		e.s.watch(Progress{Families: n})
	}
}

// watch says how far a hunt is, the first alone: those for alternatives look at plans that are no better.
func (h *hunt) watch() {
	h.steps++
	if h.s.watch == nil || h.steps%often != 0 {
		return
	}
	p := Progress{Done: len(h.sp.families) - len(h.rest), Families: len(h.sp.families)}
	if len(h.fits) > 0 {
		p.Best = costmodel.Seconds(costmodel.SixDigits(float64(h.fastest)))
	}
	h.s.watch(p)
}
