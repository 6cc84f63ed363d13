package search

import "github.com/planc-dev/planc/costmodel"

// entry is a family, a branch or a plan that waits for its turn: the first that is there.
type entry struct {
	floor  costmodel.Seconds
	order  int
	member *member
	branch *branch
	family *family
}

// before tells whether an entry has its turn before another.
func (e *entry) before(o *entry) bool {
	return e.floor < o.floor || e.floor == o.floor && e.order < o.order
}

// queue is a binary heap of entries by their bounds. (Those of container/heap would each be put into an interface.)
type queue []entry

// queueFamily adds an entry.
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

// pop takes the first entry out.
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
