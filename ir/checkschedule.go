package ir

import (
	"fmt"
	"slices"
)

// checkSchedules proves of the schedules of all stages:
//
//   - each chunk's micro-batches are forwarded, backwarded and, where backward is split, weighed, each once and in order,
//     then the stage updates, once;
//   - no more micro-batches of a chunk are in flight than it has buffers, and once as many: since they are consecutive,
//     no
//     two of them share one, and a buffer is free when its turn comes again. What lies in it to be sent has been taken by
//     then: its micro-batch's backward pass has begun with the gradient of what was sent;
//   - no deadlock is possible, and what a pass takes has been made before (Play says why one run proves that). Messages
//     of
//     a kind between two chunks cannot overtake each other, and both sides count micro-batches in order;
//   - all ranks of a group issue its collectives in one order. Ranks of one stage run one schedule, so this is left to
//     show
//     for groups over pp: no block has such a collective, and the updates of the stages that share one have these in one order.
func (p *Program) checkSchedules() error {
	if err := p.checkChunks(); err != nil {
		return err
	}
	for i := range p.Stages {
		c := &stageCheck{p: p, stage: i, done: map[Action]int{}, most: make([]int, len(p.Stages[i].Chunks))}
		if err := c.run(); err != nil {
			return err
		}
	}
	if err := p.Timetable().Play(func(Step) {}, func(Step) {}); err != nil {
		return err
	}
	return p.checkAcross()
}

// checkChunks: each of the model's chunks is on one stage, each stage has one.
func (p *Program) checkChunks() error {
	stage := map[int]int{}
	for i := range p.Stages {
		if len(p.Stages[i].Chunks) == 0 {
			return fmt.Errorf("stage %d has no chunk", i)
		}
		for _, c := range p.Stages[i].Chunks {
			if old, ok := stage[c.Index]; ok {
				return fmt.Errorf("chunk %d is on stage %d and on stage %d", c.Index, old, i)
			}
			stage[c.Index] = i
		}
	}
	for c := range len(stage) {
		if _, ok := stage[c]; !ok {
			return fmt.Errorf("no stage has chunk %d", c)
		}
	}
	if len(stage) == 0 {
		return fmt.Errorf("there are no stages")
	}
	return nil
}

// stageCheck goes through one stage's schedule.
type stageCheck struct {
	p     *Program
	stage int
	done  map[Action]int
	most  []int // of each chunk, micro-batches in flight at once
}

func (c *stageCheck) run() error {
	st := &c.p.Stages[c.stage]
	for i, a := range st.Schedule {
		if why := c.wrong(a, i == len(st.Schedule)-1); why != "" {
			return fmt.Errorf("stage %d, action %d (%v, micro-batch %d): %s", c.stage, i, a, c.done[a], why)
		}
		c.done[a]++
		if a.Kind == Forward {
			c.most[a.Chunk] = max(c.most[a.Chunk], c.inFlight(a.Chunk))
		}
	}
	return c.whole(st)
}

// wrong says why the stage cannot do a now, "" if it can.
func (c *stageCheck) wrong(a Action, last bool) string {
	st := &c.p.Stages[c.stage]
	n := c.done[a]
	before := map[ActionKind]Action{Backward: {Kind: Forward, Chunk: a.Chunk}, Weigh: {Kind: Backward, Chunk: a.Chunk}}
	names := map[ActionKind]string{Forward: "forward", Backward: "backward"}
	switch {
	case a.Kind == Finish && !last:
		return "the update is not the last action"
	case a.Kind == Finish:
		return ""
	case last:
		return "the last action is not the update"
	case a.Chunk < 0 || a.Chunk >= len(st.Chunks):
		return fmt.Sprintf("the stage has no chunk %d", a.Chunk)
	case a.Kind == Weigh && !c.p.Plan.Splits():
		return fmt.Sprintf("backward is not split under schedule %s", c.p.Plan.Schedule)
	case n >= c.p.Plan.MicroBatches:
		return fmt.Sprintf("a step has %d micro-batches", c.p.Plan.MicroBatches)
	case a.Kind == Forward && c.inFlight(a.Chunk) >= st.Chunks[a.Chunk].Buffers:
		return fmt.Sprintf("its buffer is in use: %d micro-batches are in flight, there are %d buffers",
			c.inFlight(a.Chunk), st.Chunks[a.Chunk].Buffers)
	case a.Kind != Forward && c.done[before[a.Kind]] <= n:
		return fmt.Sprintf("its %s has not been done", names[before[a.Kind].Kind])
	}
	return ""
}

// inFlight is the number of micro-batches that have a buffer of the chunk.
func (c *stageCheck) inFlight(chunk int) int {
	return c.done[Action{Kind: Forward, Chunk: chunk}] - c.done[Action{Kind: c.p.Plan.releases(), Chunk: chunk}]
}

// whole says what the schedule lacks at its end.
func (c *stageCheck) whole(st *Stage) error {
	kinds := []ActionKind{Forward, Backward}
	if c.p.Plan.Splits() {
		kinds = append(kinds, Weigh)
	}
	for i := range st.Chunks {
		for _, k := range kinds {
			if n := c.done[Action{Kind: k, Chunk: i}]; n != c.p.Plan.MicroBatches {
				return fmt.Errorf("stage %d: %v of micro-batch %d is not done", c.stage, Action{Kind: k, Chunk: i}, n)
			}
		}
		if n := st.Chunks[i].Buffers; n != c.most[i] {
			return fmt.Errorf("stage %d: chunk %d has %d buffers for %d micro-batches in flight", c.stage, i,
				n, c.most[i])
		}
	}
	if c.done[Action{Kind: Finish}] != 1 {
		return fmt.Errorf("stage %d does not update", c.stage)
	}
	return nil
}

// releases is the pass that frees a micro-batch's buffer.
func (p Plan) releases() ActionKind {
	if p.Splits() {
		return Weigh
	}
	return Backward
}

// InFlight returns, for each chunk of a stage, the most micro-batches that have a buffer at once in a schedule that
// does passes in order. The pass that frees a buffer is the weights' if the schedule has these. It takes as long as the
// turns are written, however often each is done.
func InFlight(turns []Turn, chunks int) []int {
	now, most, release := make([]int, chunks), make([]int, chunks), make([]ActionKind, chunks)
	for c := range release {
		release[c] = Backward
	}
	for _, t := range turns {
		for _, a := range t.Actions {
			if a.Kind == Weigh {
				release[a.Chunk] = Weigh
			}
		}
	}
	do := func(actions []Action) {
		for _, a := range actions {
			switch a.Kind {
			case Forward:
				now[a.Chunk]++
				most[a.Chunk] = max(most[a.Chunk], now[a.Chunk])
			case release[a.Chunk]:
				now[a.Chunk]--
			}
		}
	}
	before := make([]int, chunks)
	for _, t := range turns {
		if t.Times == 0 {
			continue
		}
		copy(before, now)
		do(t.Actions)
		if t.Times > 1 { // each time moves what is in flight by as much, so that the most is in the first or the last
			for c := range now {
				now[c] += (t.Times - 2) * (now[c] - before[c])
			}
			do(t.Actions)
		}
	}
	return most
}

// checkAcross compares the collectives over pp of the stages' updates.
func (p *Program) checkAcross() error {
	for _, s := range p.Model.Segments {
		for _, f := range s.Funcs() {
			for _, n := range f.Nodes {
				if slices.Contains(n.Attr.Axes, "pp") && n.Op.Comm() {
					return fmt.Errorf("func %s: %v runs over the stages, which do not come to it together", f.Name, n)
				}
			}
		}
	}
	for _, ends := range []bool{false, true} {
		first := across(&p.Stages[0], ends)
		for i := range p.Stages {
			if ends && i < len(p.Stages)-1 {
				continue
			}
			got := across(&p.Stages[i], ends)
			for j := range max(len(got), len(first)) {
				if j >= len(got) || j >= len(first) || got[j] != first[j] {
					return fmt.Errorf("collective %d over the stages is %q on stage 0 and %q on stage %d", j,
						at(first, j), at(got, j), i)
				}
			}
		}
	}
	return nil
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "none"
}

// across lists the collectives over pp of a stage's update, of all stages or of the ends alone.
func across(s *Stage, ends bool) []string {
	var out []string
	if s.Update == nil {
		return nil
	}
	for _, n := range s.Update.Nodes {
		if slices.Contains(n.Attr.Axes, "pp") && n.Attr.Ends == ends {
			bytes := ""
			for _, a := range n.Args {
				bytes += fmt.Sprintf(" of %d elements", a.Type.Elems())
			}
			out = append(out, n.Op.String()+bytes)
		}
	}
	return out
}
