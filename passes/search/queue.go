package search

import (
	"github.com/planc-dev/planc/costmodel"
)

// entry is a queued family, branch or member: the first that is not nil.
type entry struct {
	floor  costmodel.Seconds
	order  int
	member *member
	branch *branch
	family *spaceFamily
}

// before reports whether an entry precedes another.
func (e *entry) before(o *entry) bool {
	return e.floor < o.floor || e.floor == o.floor && e.order < o.order
}

// queue is a binary heap of entries by their bounds. (container/heap would box each entry in an interface.)
type queue []entry

// push adds an entry.
func (q *queue) push(e entry) {
	all := append(*q, e)
	i := len(all) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&all[up]) {
			break
		}
		all[i] = all[up]
		i = up
	}
	all[i] = e
	*q = all
}

// pop removes and returns the first entry.
func (q *queue) pop() entry {
	all := *q
	first, last := all[0], all[len(all)-1]
	all = all[:len(all)-1]
	*q = all
	if len(all) == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(all) {
			break
		}
		if right := down + 1; right < len(all) && all[right].before(&all[down]) {
			down = right
		}
		if !all[down].before(&last) {
			break
		}
		all[i] = all[down]
		i = down
	}
	all[i] = last
	return first
}

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
