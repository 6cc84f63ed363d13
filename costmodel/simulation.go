package costmodel

import (
	"fmt"
	"math"
	"sync"

	"github.com/planc-dev/planc/ir"
)

// Simulate runs the schedules with these times, under the rules of ir.Timetable.Play. An error is a deadlock.
func (p *Pipeline) Simulate() (*Timeline, error) {
	s := newSimulation(p)
	s.line = &Timeline{Stages: make([][]Span, len(p.Timetable.Do))}
	err := s.walk()
	if err != nil {
		return nil, err
	}
	s.line.End = s.end()
	return s.line, nil
}

// Passed is when the last pass ends: Timeline's End, to the bit, without the rest. It grows with every time of every
// chunk. How long it takes does not grow with the micro-batches, see [steady].
func (p *Pipeline) Passed() (Seconds, error) {
	s := newSimulation(p)
	defer s.recycle()
	err := s.fold()
	return s.end(), err
}

// simulation holds what has happened so far.
type simulation struct {
	table  *ir.Timetable
	times  []ChunkTime // in whole ticks
	chunks []simChunk
	stages []simStage
	line   *Timeline // nil: it is not asked for
	steady steady
}

// simChunk is what has happened to a chunk: when passes over its micro-batches began and ended, in their order.
type simChunk struct {
	forward, backward []Seconds // ends
	taken             []Seconds // when backward passes began, with the gradient that they take
	weighed           int       // second parts of backward passes
}

// simStage is a stage: where it is, since when, and what it has sent.
type simStage struct {
	cursor
	free  Seconds
	open  bool // its pass has begun
	start Seconds
	sends []sentGradient
	last  []Seconds // when the last pass of each of its chunks that makes gradients of parameters began
}

// sentGradient is that of a micro-batch, for a chunk.
type sentGradient struct{ to, micro int }

// cursor is where a stage is in its turns.
type cursor struct {
	turns []ir.Turn
	turn  int // the one that it is at, len(turns) at the end
	left  int // times that it is still to do, the present one included
	place int // the action of the present time
	did   int // actions so far
}

// begin goes to a turn, or past those that are done no times.
func (c *cursor) begin(turn int) {
	for c.turn = turn; c.turn < len(c.turns); c.turn++ {
		c.left = c.turns[c.turn].Times
		if c.left > 0 && len(c.turns[c.turn].Actions) > 0 {
			return
		}
	}
}

// next is the action that is to do.
func (c *cursor) next() (ir.Action, bool) {
	if c.turn == len(c.turns) {
		return ir.Action{}, false
	}
	return c.turns[c.turn].Actions[c.place], true
}

// pass goes on to the action after.
func (c *cursor) pass() {
	c.did++
	c.place++
	if c.place == len(c.turns[c.turn].Actions) {
		c.place = 0
		c.skip(1)
	}
}

// skip leaves the present turn out so many times.
func (c *cursor) skip(times int) {
	c.left -= times
	if c.left == 0 {
		c.begin(c.turn + 1)
	}
}

func newSimulation(p *Pipeline) *simulation {
	s := recycled.Get().(*simulation)
	s.table, s.times = p.Timetable, inTicks(p.Chunks, p.Timetable.Micro)
	s.chunks = resized(s.chunks, len(p.Chunks))
	for i := range s.chunks {
		c := &s.chunks[i]
		*c = simChunk{forward: c.forward[:0], backward: c.backward[:0], taken: c.taken[:0]}
	}
	s.stages = resized(s.stages, len(p.Timetable.Do))
	for i := range s.stages {
		st := &s.stages[i]
		*st = simStage{sends: st.sends[:0], last: make([]Seconds, len(p.Timetable.Chunks[i]))}
		st.turns = p.Timetable.Do[i]
		st.begin(0)
	}
	return s
}

// recycled are simulations that have ended. Their times take most of the memory that a search of a deep pipeline with
// many micro-batches allocates, and the next simulation overwrites them.
var recycled = sync.Pool{New: func() any { return new(simulation) }}

// recycle gives the simulation's memory to a later one. Only its stages' last may be used afterwards.
func (s *simulation) recycle() {
	s.table, s.times, s.line, s.steady = nil, nil, nil, steady{}
	recycled.Put(s)
}

// resized is a slice with n elements, those that it has had kept.
func resized[T any](s []T, n int) []T {
	s = s[:cap(s)]
	return append(s, make([]T, max(0, n-len(s)))...)[:n]
}

// inTicks are times as multiples of a tick, a power of two of which the whole step has so few that sums of them are
// exact in float64: so a schedule that repeats itself does so to the bit. A time is longer by less than a tick, which
// is 2^-51 of all that the chunks do in so many micro-batches, or less.
func inTicks(chunks []ChunkTime, micro int) []ChunkTime {
	const mantissa = 51 // bits of sums, which rounding up may make one longer
	all := Seconds(0)
	for _, c := range chunks {
		all += c.Forward + c.Backward + c.Weights + c.SendOutput + c.SendGradient
	}
	_, exponent := math.Frexp(float64(all) * float64(micro))
	tick := math.Ldexp(1, exponent-mantissa)
	up := func(t Seconds) Seconds { return Seconds(math.Ceil(float64(t)/tick) * tick) }
	out := make([]ChunkTime, len(chunks))
	for i, c := range chunks {
		out[i] = ChunkTime{up(c.Forward), up(c.Backward), up(c.Weights), up(c.SendOutput), up(c.SendGradient)}
	}
	return out
}

// end is when the last pass ends.
func (s *simulation) end() (end Seconds) {
	for i := range s.stages {
		end = max(end, s.stages[i].free)
	}
	return end
}

// walk goes through all actions.
func (s *simulation) walk() error {
	s.advance(func(int) bool { return true })
	for i := range s.stages {
		if _, more := s.stages[i].next(); more {
			return fmt.Errorf("costmodel: %w", s.table.Play(func(ir.Step) {}, func(ir.Step) {}))
		}
	}
	return nil
}

// advance lets each stage that may go on do so as far as it can, until none can. Who is first does not matter, see
// ir.Timetable.Play, which says what a deadlock is about.
func (s *simulation) advance(may func(stage int) bool) {
	for moved := true; moved; {
		moved = false
		for i := range s.stages {
			for may(i) && s.move(i) {
				moved = true
			}
		}
	}
}

// later is the later of two times. What is later in a turn, and by how much, is what the steady state is known by.
func (s *simulation) later(a, b Seconds) Seconds {
	if s.steady.watched {
		s.steady.margins = append(s.steady.margins, a-b)
	}
	return max(a, b)
}

// move does a stage's next action, or begins it, or says that it has to wait.
func (s *simulation) move(stage int) bool {
	st := &s.stages[stage]
	a, more := st.next()
	if !more {
		return false
	}
	if a.Kind == ir.Finish {
		st.pass()
		return true
	}
	of := s.table.Chunks[stage][a.Chunk]
	c, t := &s.chunks[of], &s.times[of]
	switch a.Kind {
	case ir.Forward:
		m := len(c.forward)
		if of > 0 && len(s.chunks[of-1].forward) <= m {
			return false
		}
		start := st.free
		if of > 0 {
			start = s.later(start, s.chunks[of-1].forward[m]+s.times[of-1].SendOutput)
		}
		c.forward = append(c.forward, start+t.Forward)
		s.done(stage, a, of, m, start, start+t.Forward, 0)
	case ir.Backward:
		return s.goBack(stage, a, of)
	default:
		c.weighed++
		st.last[a.Chunk] = st.free
		s.done(stage, a, of, c.weighed-1, st.free, st.free+t.Weights, 0)
	}
	return true
}

// goBack begins a backward pass when its gradient is there, and ends it when a buffer is free to send from.
func (s *simulation) goBack(stage int, a ir.Action, of int) bool {
	st, c := &s.stages[stage], &s.chunks[of]
	if !st.open {
		m := len(c.taken)
		if of+1 < len(s.chunks) && len(s.chunks[of+1].backward) <= m {
			return false
		}
		st.start = st.free
		if of+1 < len(s.chunks) {
			st.start = s.later(st.start, s.chunks[of+1].backward[m]+s.times[of+1].SendGradient)
		}
		c.taken = append(c.taken, st.start)
		st.open = true
		return true
	}
	m := len(c.taken) - 1
	end := st.start + s.times[of].Backward
	wait := Seconds(0)
	if n := len(st.sends) - ir.GradientBuffers; of > 0 && n >= 0 {
		by := st.sends[n]
		if len(s.chunks[by.to].taken) <= by.micro {
			return false
		}
		wait = s.later(s.chunks[by.to].taken[by.micro], end) - end
	}
	if of > 0 {
		if len(st.sends) == cap(st.sends) { // only the latest are looked at
			st.sends = st.sends[:copy(st.sends, st.sends[max(0, len(st.sends)-ir.GradientBuffers):])]
		}
		st.sends = append(st.sends, sentGradient{of - 1, m})
	}
	c.backward = append(c.backward, end+wait)
	st.open = false
	st.last[a.Chunk] = st.start
	s.done(stage, a, of, m, st.start, end+wait, wait)
	return true
}

// done ends an action.
func (s *simulation) done(stage int, a ir.Action, of, micro int, start, end, wait Seconds) {
	st := &s.stages[stage]
	if s.line != nil {
		step := ir.Step{Action: a, Stage: stage, Index: st.did, Micro: micro, Of: of}
		s.line.Stages[stage] = append(s.line.Stages[stage], Span{step, start, end, wait})
	}
	st.pass()
	st.free = end
}
