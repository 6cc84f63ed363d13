package costmodel

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// A schedule of many micro-batches consists of turns that repeat. Times of a turn are sums, and maxima of two, of times
// of the turn before: a max-plus linear system. Its states eventually grow by the same amount from turn to turn, or
// from one round of a few turns to the next (Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity",
// 1992, chapter 3). Before that it may drift: a slightly slower stage falls behind until it waits for something else.
//
// Both cases are detected in the same way. Suppose that between two rounds each time on which later ones depend has
// grown by its own part of a vector D, that the growth between the following two rounds is the same D, and that in both
// rounds each comparison of two times had the same outcome. Then the next round grows by D too, as long as no
// comparison changes its outcome. The margin of each comparison grows by the same amount in each round, which tells
// when that happens. Up to then rounds are skipped: times grow by a multiple of D. All of this is exact because times
// are whole ticks. The floor of a quotient of two times is exact too, because they are below 2^52.

// long is the smallest number of repetitions of a turn that is worth skipping.
const long = 16

// steady detects rounds that can be skipped.
type steady struct {
	turns   []int       // the current long turn of each stage
	watched bool        // margins are recorded
	margins []Seconds   // margins of the comparisons in the current turn: the first time minus the second
	states  []turnState // the latest states since the last skipped turn
	unused  []turnState // earlier states, whose memory is reused
	skipped int         // number of skipped turns
}

// forget drops the oldest states.
func (l *steady) forget(n int) {
	l.unused = append(l.unused, l.states[:n]...)
	l.states = slices.Delete(l.states, 0, n)
}

// newState returns an empty state.
func (l *steady) newState() (state turnState) {
	if n := len(l.unused); n > 0 {
		state = l.unused[n-1]
		l.unused = l.unused[:n-1]
	}
	return turnState{times: state.times[:0], margins: state.margins[:0], shape: state.shape[:0]}
}

// turnState holds the times on which later ones depend, after a turn, and the margins of its comparisons.
type turnState struct {
	times, margins []Seconds
	shape          []int // number of times of each kind
}

// fold runs all actions except those of rounds that it skips.
func (s *simulation) fold() error {
	for s.meet() {
		for s.repeat() {
			s.skip()
		}
	}
	return s.walk()
}

// meet advances all stages to the start of their next long turns. It reports whether they have such turns and can reach
// them.
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
	l.turns = next
	l.forget(len(l.states))
	s.advance(func(i int) bool { return s.stages[i].turn < next[i] })
	for i := range s.stages {
		if s.stages[i].turn < next[i] {
			return false
		}
	}
	return true
}

// repeat runs the long turns of all stages once. It reports whether all stages have one and can run it.
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
	state := l.newState()
	l.watched, l.margins = true, state.margins
	s.advance(func(i int) bool { return s.stages[i].did < until[i] })
	l.watched = false
	for i := range s.stages {
		if s.stages[i].did < until[i] {
			return false
		}
	}
	times, shape := s.live(state.shape)
	state.margins, state.shape = l.margins, shape
	for _, t := range times {
		state.times = append(state.times, *t)
	}
	l.states = append(l.states, state)
	if limit := 2*s.mostTurns() + 1; len(l.states) > limit {
		l.forget(1)
	}
	return true
}

// live returns the times on which later ones may depend, in memory of the simulation, and appends their numbers to
// shape.
func (s *simulation) live(shape []int) ([]*Seconds, []int) {
	times := s.liveTimes[:0]
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
		if s.preposted {
			times = append(times, &st.began)
		}
		some(st.last)
		for _, g := range st.sends[max(0, len(st.sends)-ir.GradientBuffers):] {
			to := &s.chunks[g.to]
			some(to.taken[min(g.micro, len(to.taken)):min(g.micro+1, len(to.taken))])
		}
	}
	s.liveTimes = times
	return times, shape
}

// mostTurns returns the largest number of turns in a round.
func (s *simulation) mostTurns() int { return 2*len(s.chunks) + 2 }

// skip skips rounds that would grow as the last two did.
func (s *simulation) skip() {
	l := &s.steady
	for turns := 1; 2*turns < len(l.states); turns++ {
		now := len(l.states) - 1
		if !l.repeats(now-2*turns, now-turns, now) {
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
		times, _ := s.live(nil)
		for i, t := range times {
			*t += Seconds(rounds) * (l.states[now].times[i] - l.states[now-turns].times[i])
		}
		for i := range s.stages {
			s.stages[i].skip(rounds * turns)
		}
		l.skipped += rounds * turns
		l.forget(len(l.states))
		return
	}
}

// repeats reports whether the times of three states correspond, and grow by the same amounts from the first to the
// second state and from the second to the third.
func (l *steady) repeats(first, second, third int) bool {
	a, b, c := &l.states[first], &l.states[second], &l.states[third]
	if !slices.Equal(a.shape, b.shape) || !slices.Equal(b.shape, c.shape) {
		return false
	}
	for i := range c.times {
		if c.times[i]-b.times[i] != b.times[i]-a.times[i] {
			return false
		}
	}
	return true
}

// alike returns for how many more rounds of this many turns all comparisons have the same outcome as in the last two,
// whose growths are equal.
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
