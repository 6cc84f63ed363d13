package costmodel

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// Pipeline is a step's micro-batches on all stages, in times.
type Pipeline struct {
	Timetable *ir.Timetable
	Chunks    []ChunkTime // in the model's order
}

// ChunkTime is how long a chunk's passes over a micro-batch take, and until what it hands on is there. Sends run beside
// compute.
type ChunkTime struct {
	Forward, Backward Seconds
	Weights           Seconds // of a split backward: what Backward does not hold
	SendOutput        Seconds // to the chunk after it
	SendGradient      Seconds // to the chunk before it
}

// UnitTimes are chunks whose forward takes 1 and whose backward takes 2, in two parts where it is split; sends take no time.
func UnitTimes(plan ir.Plan) []ChunkTime {
	t := ChunkTime{Forward: 1, Backward: 2}
	if plan.Splits() {
		t.Backward, t.Weights = 1, 1
	}
	out := make([]ChunkTime, plan.PP*plan.VPP)
	for i := range out {
		out[i] = t
	}
	return out
}

// Span is when a stage does an action; for Wait of that, at its end, it waits for a buffer to send from.
type Span struct {
	ir.Step
	Start, End, Wait Seconds
}

// Timeline is a simulated step, from its first forward pass to its last pass.
type Timeline struct {
	Stages [][]Span // of each stage in order, without the update
	End    Seconds  // of the last
}

// Simulate runs the schedules with these times, under the rules of ir.Timetable.Play. An error is a deadlock.
func (p *Pipeline) Simulate() (*Timeline, error) {
	s := newSimulation(p)
	s.line = &Timeline{Stages: make([][]Span, len(p.Timetable.Do))}
	if err := s.run(); err != nil {
		return nil, err
	}
	s.line.End = s.end
	return s.line, nil
}

// Passed is when the last pass ends: Timeline's End, without the rest. It grows with every time of every chunk.
func (p *Pipeline) Passed() (Seconds, error) {
	s := newSimulation(p)
	err := s.run()
	return s.end, err
}

// simulation holds what has happened so far. Passes of a chunk over the micro-batches are indexed by chunk times
// micro-batches plus micro-batch.
type simulation struct {
	p                   *Pipeline
	micro               int
	stages              []simStage
	forward, backward   []Seconds // when those that have ended did
	taken               []Seconds // when the backward passes that have begun did
	began               []int     // backward passes of each chunk
	doneForward         []int     // of each chunk
	doneBackward, other []int
	end                 Seconds   // of all passes
	line                *Timeline // nil: it is not asked for
}

// simStage is a stage: where it is, since when, and what it has sent.
type simStage struct {
	at    int
	free  Seconds
	open  bool // its pass has begun
	start Seconds
	sends []int     // the backward passes that take its gradients, as they are indexed
	last  []Seconds // when the last pass of each of its chunks that makes gradients of parameters began
}

func newSimulation(p *Pipeline) *simulation {
	n, micro := len(p.Chunks), p.Timetable.Micro
	s := &simulation{p: p, micro: micro, stages: make([]simStage, len(p.Timetable.Do)),
		forward: make([]Seconds, n*micro), backward: make([]Seconds, n*micro), taken: make([]Seconds, n*micro),
		began: make([]int, n), doneForward: make([]int, n), doneBackward: make([]int, n), other: make([]int, n)}
	for i := range s.stages {
		s.stages[i].last = make([]Seconds, len(p.Timetable.Chunks[i]))
	}
	return s
}

// run lets each stage go on as far as it can, until none can. Who is first does not matter, see ir.Timetable.Play, which
// says what a deadlock is about.
func (s *simulation) run() error {
	for moved := true; moved; {
		moved = false
		for i := range s.stages {
			for s.move(i) {
				moved = true
			}
		}
	}
	for i := range s.stages {
		if s.stages[i].at < len(s.p.Timetable.Do[i]) {
			return fmt.Errorf("costmodel: %w", s.p.Timetable.Play(func(ir.Step) {}, func(ir.Step) {}))
		}
	}
	return nil
}

// move does a stage's next action, or begins it, or says that it has to wait.
func (s *simulation) move(stage int) bool {
	st := &s.stages[stage]
	do := s.p.Timetable.Do[stage]
	if st.at == len(do) {
		return false
	}
	a := do[st.at]
	if a.Kind == ir.Finish {
		st.at++
		return true
	}
	c := s.p.Timetable.Chunks[stage][a.Chunk]
	switch a.Kind {
	case ir.Forward:
		m := s.doneForward[c]
		if c > 0 && s.doneForward[c-1] <= m {
			return false
		}
		start := st.free
		if c > 0 {
			start = max(start, s.forward[(c-1)*s.micro+m]+s.p.Chunks[c-1].SendOutput)
		}
		s.doneForward[c]++
		s.forward[c*s.micro+m] = start + s.p.Chunks[c].Forward
		s.done(stage, a, c, m, start, s.forward[c*s.micro+m], 0)
	case ir.Backward:
		return s.goBack(stage, a, c)
	default:
		m := s.other[c]
		s.other[c]++
		st.last[a.Chunk] = st.free
		s.done(stage, a, c, m, st.free, st.free+s.p.Chunks[c].Weights, 0)
	}
	return true
}

// goBack begins a backward pass when its gradient is there, and ends it when a buffer is free to send from.
func (s *simulation) goBack(stage int, a ir.Action, c int) bool {
	st := &s.stages[stage]
	if !st.open {
		m := s.began[c]
		if c+1 < len(s.p.Chunks) && s.doneBackward[c+1] <= m {
			return false
		}
		st.start = st.free
		if c+1 < len(s.p.Chunks) {
			st.start = max(st.start, s.backward[(c+1)*s.micro+m]+s.p.Chunks[c+1].SendGradient)
		}
		s.taken[c*s.micro+m] = st.start
		s.began[c]++
		st.open = true
		return true
	}
	m := s.began[c] - 1
	end := st.start + s.p.Chunks[c].Backward
	wait := Seconds(0)
	if n := len(st.sends) - ir.GradientBuffers; c > 0 && n >= 0 {
		by := st.sends[n]
		if s.began[by/s.micro] <= by%s.micro {
			return false
		}
		wait = max(0, s.taken[by]-end)
	}
	if c > 0 {
		st.sends = append(st.sends, (c-1)*s.micro+m)
	}
	s.doneBackward[c]++
	s.backward[c*s.micro+m] = end + wait
	st.open = false
	st.last[a.Chunk] = st.start
	s.done(stage, a, c, m, st.start, end+wait, wait)
	return true
}

// done ends an action.
func (s *simulation) done(stage int, a ir.Action, chunk, micro int, start, end, wait Seconds) {
	st := &s.stages[stage]
	if s.line != nil {
		step := ir.Step{Action: a, Stage: stage, Index: st.at, Micro: micro, Of: chunk}
		s.line.Stages[stage] = append(s.line.Stages[stage], Span{step, start, end, wait})
	}
	st.at++
	st.free = end
	s.end = max(s.end, end)
}

// Work is how long a stage computes.
func (t *Timeline) Work(stage int) Seconds {
	sum := Seconds(0)
	for _, s := range t.Stages[stage] {
		sum += s.End - s.Start - s.Wait
	}
	return sum
}

// Bubble is how long a stage waits until the last one has done its passes, since the updates of all begin together.
func (t *Timeline) Bubble(stage int) Seconds { return t.End - t.Work(stage) }

// Waits is how long a stage waits between its own first and last pass.
func (t *Timeline) Waits(stage int) Seconds {
	spans := t.Stages[stage]
	return spans[len(spans)-1].End - spans[0].Start - t.Work(stage)
}

// BubbleFraction is the part of a stage's time that it waits.
func (t *Timeline) BubbleFraction(stage int) float64 { return float64(t.Bubble(stage) / t.End) }
