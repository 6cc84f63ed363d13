package costmodel

import (
	"fmt"
	"math"
	"sync"

	"github.com/planc-dev/planc/ir"
)

// Simulate runs the schedules with these times, under the rules of ir.Timetable.Play. An error is a deadlock. If
// receives are preposted, the buffer of a gradient is free as soon as it has been transferred, not only when the
// receiver's pass begins, as Play assumes for every runtime.
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

// Passed returns the end of the last pass: exactly Timeline's End, without the rest. It grows with each time of each
// chunk. Its running time does not grow with the number of micro-batches, see [steady].
func (p *Pipeline) Passed() (Seconds, error) {
	s := newSimulation(p)
	defer s.recycle()
	err := s.fold()
	return s.end(), err
}

// simulation is the state of a simulated step.
type simulation struct {
	table     *ir.Timetable
	times     []ChunkTime // in whole ticks
	preposted bool
	chunks    []simChunk
	stages    []simStage
	line      *Timeline // nil if no timeline is recorded
	steady    steady

	liveTimes []*Seconds // memory that is reused
}

// simChunk is the state of a chunk: the starts and ends of passes over its micro-batches, in order.
type simChunk struct {
	forward, backward []Seconds // ends of passes
	taken             []Seconds // when gradients of backward passes that have begun have left the sender's buffer
	weighed           int       // finished second parts of backward passes
}

// simStage is the state of a stage: its position, since when, and what it has sent.
type simStage struct {
	cursor
	free  Seconds
	began Seconds // start of the last finished pass, when the receive of the next one was posted
	open  bool    // the current pass has started
	start Seconds
	sends []sentGradient
	last  []Seconds // start of the last pass of each of its chunks that computes weight gradients
}

// sentGradient is the gradient of a micro-batch that was sent to a chunk.
type sentGradient struct{ to, micro int }

// cursor is a stage's position in its turns.
type cursor struct {
	turns []ir.Turn
	turn  int // the current turn, len(turns) at the end
	left  int // remaining repetitions, including the current one
	place int // the action in the current repetition
	did   int // actions so far
}

// begin moves to a turn, skipping turns without repetitions.
func (c *cursor) begin(turn int) {
	for c.turn = turn; c.turn < len(c.turns); c.turn++ {
		c.left = c.turns[c.turn].Times
		if c.left > 0 && len(c.turns[c.turn].Actions) > 0 {
			return
		}
	}
}

// next returns the next action.
func (c *cursor) next() (ir.Action, bool) {
	if c.turn == len(c.turns) {
		return ir.Action{}, false
	}
	return c.turns[c.turn].Actions[c.place], true
}

// pass moves to the following action.
func (c *cursor) pass() {
	c.did++
	c.place++
	if c.place == len(c.turns[c.turn].Actions) {
		c.place = 0
		c.skip(1)
	}
}

// skip skips a number of repetitions of the current turn.
func (c *cursor) skip(times int) {
	c.left -= times
	if c.left == 0 {
		c.begin(c.turn + 1)
	}
}

func newSimulation(p *Pipeline) *simulation {
	s := recycled.Get().(*simulation)
	s.table, s.times, s.preposted = p.Timetable, inTicks(p.Chunks, p.Timetable.Micro), p.Preposted
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

// recycled are finished simulations, whose memory the next simulation reuses. Their times are most of the memory that a
// search of a deep pipeline with many micro-batches allocates.
var recycled = sync.Pool{New: func() any { return new(simulation) }}

// recycle releases the simulation's memory for reuse. Afterwards only its stages' last may be used.
func (s *simulation) recycle() {
	s.table, s.times, s.line = nil, nil, nil
	s.steady = steady{unused: append(s.steady.unused, s.steady.states...)}
	recycled.Put(s)
}

// resized returns a slice with n elements, whose existing elements are kept.
func resized[T any](s []T, n int) []T {
	s = s[:cap(s)]
	return append(s, make([]T, max(0, n-len(s)))...)[:n]
}

// inTicks returns times rounded up to multiples of a tick, a power of two. The whole step has so few ticks that sums
// are exact in float64, so that a schedule that repeats does so exactly. The rounding of a time is less than a tick, at
// most 2^-51 of the chunks' total time over the micro-batches.
func inTicks(chunks []ChunkTime, micro int) []ChunkTime {
	const mantissa = 51 // bits of sums, which rounding up may make one bit longer
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

// end returns the end of the last pass.
func (s *simulation) end() (end Seconds) {
	for i := range s.stages {
		end = max(end, s.stages[i].free)
	}
	return end
}

// walk runs all actions.
func (s *simulation) walk() error {
	s.advance(func(int) bool { return true })
	for i := range s.stages {
		if _, more := s.stages[i].next(); more {
			return fmt.Errorf("costmodel: %w", s.table.Play(func(ir.Step) {}, func(ir.Step) {}))
		}
	}
	return nil
}

// advance runs each stage for which may holds as far as possible, until none can continue. The order of stages does not
// matter, see ir.Timetable.Play, which also reports deadlocks.
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

// later returns the later of two times. It records which is later in a turn and by how much, by which the steady state
// is recognized.
func (s *simulation) later(a, b Seconds) Seconds {
	if s.steady.watched {
		s.steady.margins = append(s.steady.margins, a-b)
	}
	return max(a, b)
}

// move starts or finishes a stage's next action. It returns false if the stage has to wait.
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
	chunk := s.table.Chunks[stage][a.Chunk]
	c, t := &s.chunks[chunk], &s.times[chunk]
	switch a.Kind {
	case ir.Forward:
		m := len(c.forward)
		if chunk > 0 && len(s.chunks[chunk-1].forward) <= m {
			return false
		}
		start := st.free
		if chunk > 0 {
			start = s.later(start, s.arrival(st, s.chunks[chunk-1].forward[m], s.times[chunk-1].SendOutput))
		}
		c.forward = append(c.forward, start+t.Forward)
		s.done(stage, ir.Step{Action: a, Micro: m, ModelChunk: chunk}, start, start+t.Forward, 0)
	case ir.Backward:
		return s.goBack(stage, a, chunk)
	default:
		c.weighed++
		st.last[a.Chunk] = st.free
		s.done(stage, ir.Step{Action: a, Micro: c.weighed - 1, ModelChunk: chunk}, st.free, st.free+t.Weights, 0)
	}
	return true
}

// arrival returns when the message of a stage's next pass, which takes some time, has arrived after it was sent.
func (s *simulation) arrival(st *simStage, sent, takes Seconds) Seconds {
	if s.preposted {
		sent = s.later(sent, st.began)
	}
	return sent + takes
}

// goBack starts a backward pass when its gradient is there, and finishes it when a send buffer is free.
func (s *simulation) goBack(stage int, a ir.Action, chunk int) bool {
	st, c := &s.stages[stage], &s.chunks[chunk]
	if !st.open {
		m := len(c.taken)
		if chunk+1 < len(s.chunks) && len(s.chunks[chunk+1].backward) <= m {
			return false
		}
		st.start = st.free
		arrived := Seconds(0)
		if chunk+1 < len(s.chunks) {
			arrived = s.arrival(st, s.chunks[chunk+1].backward[m], s.times[chunk+1].SendGradient)
			st.start = s.later(st.start, arrived)
		}
		if !s.preposted {
			arrived = st.start
		}
		c.taken = append(c.taken, arrived)
		st.open = true
		return true
	}
	m := len(c.taken) - 1
	end := st.start + s.times[chunk].Backward
	wait := Seconds(0)
	if n := len(st.sends) - ir.GradientBuffers; chunk > 0 && n >= 0 {
		by := st.sends[n]
		if len(s.chunks[by.to].taken) <= by.micro {
			return false
		}
		wait = s.later(s.chunks[by.to].taken[by.micro], end) - end
	}
	if chunk > 0 {
		if len(st.sends) == cap(st.sends) { // only the latest sends are needed
			st.sends = st.sends[:copy(st.sends, st.sends[max(0, len(st.sends)-ir.GradientBuffers):])]
		}
		st.sends = append(st.sends, sentGradient{chunk - 1, m})
	}
	c.backward = append(c.backward, end+wait)
	st.open = false
	st.last[a.Chunk] = st.start
	s.done(stage, ir.Step{Action: a, Micro: m, ModelChunk: chunk}, st.start, end+wait, wait)
	return true
}

// done finishes an action, given as a step without its stage and index.
func (s *simulation) done(stage int, step ir.Step, start, end, wait Seconds) {
	st := &s.stages[stage]
	if s.line != nil {
		step.Stage, step.Index = stage, st.did
		s.line.Stages[stage] = append(s.line.Stages[stage], Span{step, start, end, wait})
	}
	st.pass()
	st.free, st.began = end, start
}
