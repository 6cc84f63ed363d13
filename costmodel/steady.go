package costmodel

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// A schedule of many micro-batches is turns that repeat. Times of a turn are sums of times of the turn before and the
// later of two of them: a max-plus linear system, whose states end up growing by the same from turn to turn, perhaps
// from one round of a few turns to the next (Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity",
// 1992, chapter 3). Before that it may drift: a stage that is a little slower falls behind until what it waits for is
// another.
//
// Both are seen the same way. Let all times that later ones are made of have grown by D between two rounds, each time
// by its own part of D, and by the same D between the two rounds after, and let of any two times that were compared the
// same one have been later in both. Then the next round's growth is D too, as long as no comparison turns out
// otherwise; and the margin of each grows by the same each round, which says when that is. So many rounds are skipped:
// times grow by so many D. Since times are whole ticks, all of that is exact: so is the floor of a quotient of two,
// which are below 2^52.

// long is how many times a turn is done that is worth a look.
const long = 16

// steady looks for rounds that may be skipped.
type steady struct {
	turns   []int       // of each stage, the long turn that it is at
	watched bool        // margins are kept
	margins []Seconds   // by how much the first of two times was later, of those of the present turn
	states  []turnState // after the turns since the last that was skipped, the latest of them
	skipped int         // turns
}

// turnState is the times of which later ones are made, after a turn, and the margins of what was compared in it.
type turnState struct {
	times, margins []Seconds
	shape          []int // how many times there are of each kind
}

// fold goes through all actions but those of rounds that it skips.
func (s *simulation) fold() error {
	for s.meet() {
		for s.repeat() {
			s.skip()
		}
	}
	return s.walk()
}

// meet brings all stages to where their next long turns begin, and tells whether they have such and can.
func (s *simulation) meet() bool {
	l := &s.steady
	next := make([]int, len(s.stages))
	for i := range s.stages {
		turns, from := s.stages[i].turns, 0
		if l.turns != nil {
			from = l.turns[i] + 1
		}
		at := slices.IndexFunc(turns[from:], func(t ir.Turn) bool { return t.Times >= long })
		if at < 0 {
			return false
		}
		next[i] = from + at
	}
	l.turns, l.states = next, nil
	s.advance(func(i int) bool { return s.stages[i].turn < next[i] })
	for i := range s.stages {
		if s.stages[i].turn < next[i] {
			return false
		}
	}
	return true
}

// repeat lets all stages do their long turns once more, and tells whether all have and can.
func (s *simulation) repeat() bool {
	l := &s.steady
	until := make([]int, len(s.stages))
	for i := range s.stages {
		st := &s.stages[i]
		if st.turn != l.turns[i] || st.place > 0 {
			return false
		}
		until[i] = st.did + len(st.turns[st.turn].Actions)
	}
	l.watched, l.margins = true, nil
	s.advance(func(i int) bool { return s.stages[i].did < until[i] })
	l.watched = false
	for i := range s.stages {
		if s.stages[i].did < until[i] {
			return false
		}
	}
	times, shape := s.live()
	state := turnState{margins: l.margins, shape: shape}
	for _, t := range times {
		state.times = append(state.times, *t)
	}
	l.states = append(l.states, state)
	if most := 2*s.mostTurns() + 1; len(l.states) > most {
		l.states = slices.Delete(l.states, 0, 1)
	}
	return true
}

// live are the times of which later ones may be made.
func (s *simulation) live() (times []*Seconds, shape []int) {
	some := func(ts []Seconds) {
		shape = append(shape, len(ts))
		for i := range ts {
			times = append(times, &ts[i])
		}
	}
	for i := range s.chunks {
		c := &s.chunks[i]
		if i+1 < len(s.chunks) {
			some(c.forward[len(s.chunks[i+1].forward):])
		}
		if i > 0 {
			some(c.backward[len(s.chunks[i-1].taken):])
		}
	}
	for i := range s.stages {
		st := &s.stages[i]
		times = append(times, &st.free)
		some(st.last)
		for _, g := range st.sends[max(0, len(st.sends)-ir.GradientBuffers):] {
			to := &s.chunks[g.to]
			some(to.taken[min(g.micro, len(to.taken)):min(g.micro+1, len(to.taken))])
		}
	}
	return times, shape
}

// mostTurns is how many turns a round may have.
func (s *simulation) mostTurns() int { return 2*len(s.chunks) + 2 }

// skip leaves rounds out that would grow as the last two did.
func (s *simulation) skip() {
	l := &s.steady
	for turns := 1; 2*turns < len(l.states); turns++ {
		now := len(l.states) - 1
		grown := l.grown(now-turns, now)
		if grown == nil || !slices.Equal(grown, l.grown(now-2*turns, now-turns)) {
			continue
		}
		rounds := l.alike(turns)
		for i := range s.stages {
			left := 0
			if st := &s.stages[i]; st.turn == l.turns[i] {
				left = st.left
			}
			rounds = min(rounds, left/turns)
		}
		if rounds == 0 {
			return
		}
		times, _ := s.live()
		for i, t := range times {
			*t += Seconds(rounds) * grown[i]
		}
		for i := range s.stages {
			s.stages[i].skip(rounds * turns)
		}
		l.skipped, l.states = l.skipped+rounds*turns, nil
		return
	}
}

// grown is by how much times have from one turn to another, nil if they are not the same ones.
func (l *steady) grown(from, to int) []Seconds {
	a, b := &l.states[from], &l.states[to]
	if !slices.Equal(a.shape, b.shape) {
		return nil
	}
	out := make([]Seconds, len(a.times))
	for i := range out {
		out[i] = b.times[i] - a.times[i]
	}
	return out
}

// alike is for how many more rounds of so many turns all comparisons turn out as in the last two, whose growths are the
// same.
func (l *steady) alike(turns int) int {
	rounds := math.MaxInt
	for now := len(l.states) - turns; now < len(l.states); now++ {
		a, b := l.states[now-turns].margins, l.states[now].margins
		if len(a) != len(b) {
			return 0
		}
		for i := range a {
			change := b[i] - a[i]
			switch {
			case a[i] > 0 && b[i] < 0, a[i] < 0 && b[i] > 0:
				return 0
			case change < 0 && b[i] >= 0, change > 0 && b[i] <= 0:
				if n := math.Floor(float64(-b[i] / change)); n < float64(rounds) {
					rounds = int(n)
				}
			}
		}
	}
	return rounds
}
