package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Timetable is what all stages do in a step.
type Timetable struct {
	Micro  int      // micro-batches of a step
	Chunks [][]int  // of each stage, in the model's order
	Do     [][]Turn // of each stage
}

// Turn is actions that a stage does Times times in a row. A schedule of a million micro-batches is a few of them.
type Turn struct {
	Actions []Action
	Times   int
}

// Actions are turns written out.
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

// Timetable is the program's.
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

// last is the model's last chunk.
func (t *Timetable) last() int {
	n := 0
	for _, cs := range t.Chunks {
		n = max(n, slices.Max(cs))
	}
	return n
}

// Step is an action with what follows from its place in the schedule.
type Step struct {
	Action
	Stage, Index int // which action of which stage
	Micro        int // the micro-batch
	Of           int // the chunk, in the model's order
}

// String names the step as messages do.
func (s Step) String() string {
	if s.Kind == Finish {
		return fmt.Sprintf("stage %d, action %d (U)", s.Stage, s.Index)
	}
	return fmt.Sprintf("stage %d, action %d (%v, micro-batch %d)", s.Stage, s.Index, s.Action, s.Micro)
}

// GradientBuffers is how many gradients a stage may have sent that no one has taken yet: they take turns in so many
// buffers of the runtime.
const GradientBuffers = 2

// Play lets the stages run their schedules, under the rules of the runtime: a pass waits for its input; a forward pass
// hands its output over and goes on; a backward pass waits, before it sends, until the gradient that its stage sent
// GradientBuffers before is taken. begin is called where a step has its input, end where it is done; a step's input
// comes from steps that ended before, and what it waits for at its end is a step that began before. An error is a
// deadlock: it says what each stage waits for.
//
// Each stage does one thing after another and waits for one message at a time, and of each message there is one sender
// and one receiver: such a network ends in the same state whatever the speeds are. So one run without a deadlock proves
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
	do          [][]Action     // of each stage, its turns written out
	at          []int          // of each stage, the action that it is at
	open        []bool         // it has begun that
	sends       [][]sent       // of each stage, its gradients
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
		s.Of = p.t.Chunks[stage][a.Chunk]
		s.Micro = p.began[Action{Kind: a.Kind, Chunk: s.Of}]
		if p.open[stage] {
			s.Micro--
		}
	}
	return s
}

// move lets a stage begin or end its next action, if it lacks nothing.
func (p *player) move(stage int) bool {
	if p.at[stage] == len(p.do[stage]) || p.lacks(stage) != "" {
		return false
	}
	s := p.step(stage)
	of := Action{Kind: s.Kind, Chunk: s.Of}
	if !p.open[stage] {
		p.open[stage] = true
		p.began[of]++
		p.begin(s)
		return true
	}
	if s.Kind == Backward && s.Of > 0 {
		p.sends[stage] = append(p.sends[stage], sent{s.Of - 1, s.Micro})
	}
	p.open[stage] = false
	p.at[stage]++
	p.done[of]++
	p.end(s)
	return true
}

// lacks says what a stage waits for, "" for nothing.
func (p *player) lacks(stage int) string {
	s := p.step(stage)
	switch {
	case p.open[stage] && s.Kind == Backward && s.Of > 0:
		return p.untaken(stage)
	case p.open[stage]:
	case s.Kind == Forward && s.Of > 0 && p.done[Action{Kind: Forward, Chunk: s.Of - 1}] <= s.Micro:
		return fmt.Sprintf("chunk %d has done forward of micro-batch %d", s.Of-1, s.Micro)
	case s.Kind == Backward && s.Of < p.t.last() && p.done[Action{Kind: Backward, Chunk: s.Of + 1}] <= s.Micro:
		return fmt.Sprintf("chunk %d has done backward of micro-batch %d", s.Of+1, s.Micro)
	}
	return ""
}

// untaken says which gradient still lies in the buffer that a stage needs next.
func (p *player) untaken(stage int) string {
	sends := p.sends[stage]
	if len(sends) < GradientBuffers {
		return ""
	}
	g := sends[len(sends)-GradientBuffers]
	if p.began[Action{Kind: Backward, Chunk: g.to}] > g.micro {
		return ""
	}
	return fmt.Sprintf("chunk %d takes the gradient of micro-batch %d from a buffer", g.to, g.micro)
}
