package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Timetable is the schedule of all stages in a step.
type Timetable struct {
	Micro  int      // micro-batches per step
	Chunks [][]int  // chunks of each stage, in the model's order
	Do     [][]Turn // turns of each stage
}

// Turn is a list of actions that a stage repeats Times times. A schedule of a million micro-batches has only a few
// turns.
type Turn struct {
	Actions []Action
	Times   int
}

// Actions returns the turns as a list of actions.
func Actions(turns []Turn) []Action {
	n := 0
	for _, t := range turns {
		n += t.Times * len(t.Actions)
	}
	out := make([]Action, 0, n)
	for _, t := range turns {
		for range t.Times {
			out = append(out, t.Actions...)
		}
	}
	return out
}

// Timetable returns the program's timetable.
func (p *Program) Timetable() *Timetable {
	t := &Timetable{Micro: p.Plan.MicroBatches}
	for i := range p.Stages {
		var chunks []int
		for _, c := range p.Stages[i].Chunks {
			chunks = append(chunks, c.Index)
		}
		t.Chunks = append(t.Chunks, chunks)
		t.Do = append(t.Do, []Turn{{p.Stages[i].Schedule, 1}})
	}
	return t
}

// last returns the index of the model's last chunk.
func (t *Timetable) last() int {
	n := 0
	for _, cs := range t.Chunks {
		n = max(n, slices.Max(cs))
	}
	return n
}

// Step is an action with what follows from its position in the schedule.
type Step struct {
	Action
	Stage, Index int // the stage, and the index of the action on it
	Micro        int // the micro-batch
	ModelChunk   int // the chunk, in the model's order
}

// String returns the step as messages name it.
func (s Step) String() string {
	if s.Kind == Finish {
		return fmt.Sprintf("stage %d, action %d (U)", s.Stage, s.Index)
	}
	return fmt.Sprintf("stage %d, action %d (%v, micro-batch %d)", s.Stage, s.Index, s.Action, s.Micro)
}

// GradientBuffers is the number of sent gradients of a stage that may wait to be received, because the runtime
// double-buffers them.
const GradientBuffers = 2

// Play runs the stages' schedules under the rules of the runtime. A pass waits for its input. A forward pass hands its
// output over and continues. A backward pass waits, before it sends, until the gradient that its stage sent
// GradientBuffers earlier has been received. begin is called when a step has its input, end when it is finished. A
// step's input comes from steps that ended before, and what it waits for at its end is a step that began before. An
// error is a deadlock: it says what each stage waits for.
//
// Each stage runs its actions in sequence and waits for one message at a time, and each message has one sender and one
// receiver. Such a network ends in the same state for all speeds of the stages. So one run without a deadlock proves
// that there is none.
func (t *Timetable) Play(begin, end func(Step)) error {
	p := &player{t: t, do: make([][]Action, len(t.Do)), at: make([]int, len(t.Do)), open: make([]bool, len(t.Do)),
		sends: make([][]sent, len(t.Do)),
		done:  map[Action]int{}, began: map[Action]int{}, begin: begin, end: end}
	for i, turns := range t.Do {
		p.do[i] = Actions(turns)
	}
	for moved := true; moved; {
		moved = false
		for i := range t.Do {
			for p.move(i) {
				moved = true
			}
		}
	}
	var stuck []string
	for i := range t.Do {
		if p.at[i] < len(p.do[i]) {
			stuck = append(stuck, fmt.Sprintf("%v waits until %s", p.step(i), p.lacks(i)))
		}
	}
	if len(stuck) > 0 {
		return fmt.Errorf("deadlock: %s", strings.Join(stuck, "; "))
	}
	return nil
}

// player runs a timetable.
type player struct {
	t           *Timetable
	do          [][]Action     // actions of each stage
	at          []int          // the current action of each stage
	open        []bool         // whether the current action of each stage has begun
	sends       [][]sent       // gradients sent by each stage
	done, began map[Action]int // passes of each kind, by chunk in the model's order
	begin, end  func(Step)
}

// sent is the gradient of a micro-batch for a chunk.
type sent struct{ to, micro int }

func (p *player) step(stage int) Step {
	i := p.at[stage]
	a := p.do[stage][i]
	s := Step{Action: a, Stage: stage, Index: i}
	if a.Kind != Finish {
		s.ModelChunk = p.t.Chunks[stage][a.Chunk]
		s.Micro = p.began[Action{Kind: a.Kind, Chunk: s.ModelChunk}]
		if p.open[stage] {
			s.Micro--
		}
	}
	return s
}

// move begins or ends the next action of a stage, unless it has to wait.
func (p *player) move(stage int) bool {
	if p.at[stage] == len(p.do[stage]) || p.lacks(stage) != "" {
		return false
	}
	s := p.step(stage)
	key := Action{Kind: s.Kind, Chunk: s.ModelChunk}
	if !p.open[stage] {
		p.open[stage] = true
		p.began[key]++
		p.begin(s)
		return true
	}
	if s.Kind == Backward && s.ModelChunk > 0 {
		p.sends[stage] = append(p.sends[stage], sent{s.ModelChunk - 1, s.Micro})
	}
	p.open[stage] = false
	p.at[stage]++
	p.done[key]++
	p.end(s)
	return true
}

// lacks describes what a stage waits for, "" for nothing.
func (p *player) lacks(stage int) string {
	s := p.step(stage)
	switch {
	case p.open[stage] && s.Kind == Backward && s.ModelChunk > 0:
		return p.untaken(stage)
	case p.open[stage]:
	case s.Kind == Forward && s.ModelChunk > 0 && p.done[Action{Kind: Forward, Chunk: s.ModelChunk - 1}] <= s.Micro:
		return fmt.Sprintf("chunk %d has run forward of micro-batch %d", s.ModelChunk-1, s.Micro)
	case s.Kind == Backward && s.ModelChunk < p.t.last() &&
		p.done[Action{Kind: Backward, Chunk: s.ModelChunk + 1}] <= s.Micro:
		return fmt.Sprintf("chunk %d has run backward of micro-batch %d", s.ModelChunk+1, s.Micro)
	}
	return ""
}

// untaken describes the gradient that still occupies the buffer that a stage needs next.
func (p *player) untaken(stage int) string {
	sends := p.sends[stage]
	if len(sends) < GradientBuffers {
		return ""
	}
	g := sends[len(sends)-GradientBuffers]
	if p.began[Action{Kind: Backward, Chunk: g.to}] > g.micro {
		return ""
	}
	return fmt.Sprintf("chunk %d receives the gradient of micro-batch %d from a buffer", g.to, g.micro)
}
