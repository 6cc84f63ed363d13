package ir

import (
	"fmt"
	"slices"
)

// checkSchedules proves the following properties of the schedules of all stages:
//
//   - Each chunk runs forward, backward and, if backward is split, the weights pass of each micro-batch once and in
//     order. Then the stage updates once.
//   - The number of micro-batches of a chunk in flight reaches its number of buffers and never exceeds it. They are
//     consecutive, so that no two of them share a buffer, and a buffer is free when its turn comes again. A value in it
//     that was to be sent has been received by then, because the micro-batch's backward pass has started with the
//     gradient of that value.
//   - No deadlock is possible, and the inputs of a pass exist before it starts (Play explains why one run proves that).
//     Messages of a kind between two chunks cannot overtake each other, and both sides count micro-batches in order.
//   - All ranks of a group launch its collectives in the same order. Ranks of a stage run the same schedule, so only
//     groups over pp remain: no block has such a collective, and the stages that share one have them in the same order
//     in their updates.
func (p *Program) checkSchedules() error {
	if err := p.checkChunks(); err != nil {
		return err
	}
	for i := range p.Stages {
		c := &stageCheck{p: p, stage: i, done: map[Action]int{}, peaks: make([]int, len(p.Stages[i].Chunks))}
		if err := c.run(); err != nil {
			return err
		}
	}
	if err := p.Timetable().Play(func(Step) {}, func(Step) {}); err != nil {
		return err
	}
	return p.checkAcross()
}

// checkChunks checks that each of the model's chunks is on one stage, and that each stage has a chunk.
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

// stageCheck checks one stage's schedule.
type stageCheck struct {
	p     *Program
	stage int
	done  map[Action]int
	peaks []int // micro-batches of each chunk that are in flight at once, at most
}

func (c *stageCheck) run() error {
	st := &c.p.Stages[c.stage]
	for i, a := range st.Schedule {
		if why := c.wrong(a, i == len(st.Schedule)-1); why != "" {
			return fmt.Errorf("stage %d, action %d (%v, micro-batch %d): %s", c.stage, i, a, c.done[a], why)
		}
		c.done[a]++
		if a.Kind == Forward {
			c.peaks[a.Chunk] = max(c.peaks[a.Chunk], c.inFlight(a.Chunk))
		}
	}
	return c.whole(st)
}

// wrong returns why the stage cannot run a now, "" if it can.
func (c *stageCheck) wrong(a Action, last bool) string {
	st := &c.p.Stages[c.stage]
	n := c.done[a]
	before := map[ActionKind]Action{Backward: {Kind: Forward, Chunk: a.Chunk},
		WeightGrad: {Kind: Backward, Chunk: a.Chunk}}
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
	case a.Kind == WeightGrad && !c.p.Plan.Splits():
		return fmt.Sprintf("backward is not split under schedule %s", c.p.Plan.Schedule)
	case n >= c.p.Plan.MicroBatches:
		return fmt.Sprintf("a step has %d micro-batches", c.p.Plan.MicroBatches)
	case a.Kind == Forward && c.inFlight(a.Chunk) >= st.Chunks[a.Chunk].Buffers:
		return fmt.Sprintf("its buffer is in use: %d micro-batches are in flight, there are %d buffers",
			c.inFlight(a.Chunk), st.Chunks[a.Chunk].Buffers)
	case a.Kind != Forward && c.done[before[a.Kind]] <= n:
		return fmt.Sprintf("its %s pass has not run", names[before[a.Kind].Kind])
	}
	return ""
}

// inFlight returns the number of micro-batches that occupy a buffer of the chunk.
func (c *stageCheck) inFlight(chunk int) int {
	return c.done[Action{Kind: Forward, Chunk: chunk}] - c.done[Action{Kind: c.p.Plan.releases(), Chunk: chunk}]
}

// whole returns what is missing at the end of the schedule.
func (c *stageCheck) whole(st *Stage) error {
	kinds := []ActionKind{Forward, Backward}
	if c.p.Plan.Splits() {
		kinds = append(kinds, WeightGrad)
	}
	for i := range st.Chunks {
		for _, k := range kinds {
			if n := c.done[Action{Kind: k, Chunk: i}]; n != c.p.Plan.MicroBatches {
				return fmt.Errorf("stage %d: %v of micro-batch %d is missing", c.stage, Action{Kind: k, Chunk: i}, n)
			}
		}
		if n := st.Chunks[i].Buffers; n != c.peaks[i] {
			return fmt.Errorf("stage %d: chunk %d has %d buffers for %d micro-batches in flight", c.stage, i,
				n, c.peaks[i])
		}
	}
	if c.done[Action{Kind: Finish}] != 1 {
		return fmt.Errorf("stage %d has no update", c.stage)
	}
	return nil
}

// releases returns the pass that frees a micro-batch's buffer.
func (p Plan) releases() ActionKind {
	if p.Splits() {
		return WeightGrad
	}
	return Backward
}

// InFlight returns, for each chunk of a stage, the largest number of micro-batches that occupy a buffer at the same
// time under a schedule. If the schedule has weights passes, these free the buffers, otherwise backward passes do. Its
// running time depends on the text of the turns, not on their repetitions.
func InFlight(turns []Turn, chunks int) []int {
	now, peak, release := make([]int, chunks), make([]int, chunks), make([]ActionKind, chunks)
	for c := range release {
		release[c] = Backward
	}
	for _, t := range turns {
		for _, a := range t.Actions {
			if a.Kind == WeightGrad {
				release[a.Chunk] = WeightGrad
			}
		}
	}
	do := func(actions []Action) {
		for _, a := range actions {
			switch a.Kind {
			case Forward:
				now[a.Chunk]++
				peak[a.Chunk] = max(peak[a.Chunk], now[a.Chunk])
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
		// each repetition changes the numbers by the same amount, so that the maximum is in the first or the last one
		if t.Times > 1 {
			for c := range now {
				now[c] += (t.Times - 2) * (now[c] - before[c])
			}
			do(t.Actions)
		}
	}
	return peak
}

// checkAcross compares the collectives over pp in the stages' updates.
func (p *Program) checkAcross() error {
	for _, s := range p.Model.Segments {
		for _, f := range s.Funcs() {
			for _, n := range f.Nodes {
				if slices.Contains(n.Attr.Axes, "pp") && n.Op.Comm() {
					return fmt.Errorf("func %s: %v runs over stages, which do not reach it together", f.Name, n)
				}
			}
		}
	}
	for _, firstLast := range []bool{false, true} {
		first := across(&p.Stages[0], firstLast)
		for i := range p.Stages {
			if firstLast && i < len(p.Stages)-1 {
				continue
			}
			got := across(&p.Stages[i], firstLast)
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

// across returns the collectives over pp of a stage's update: those over all stages, or those over the first and last.
func across(s *Stage, firstLast bool) []string {
	var out []string
	if s.Update == nil {
		return nil
	}
	for _, n := range s.Update.Nodes {
		if slices.Contains(n.Attr.Axes, "pp") && n.Attr.FirstLast == firstLast {
			bytes := ""
			for _, a := range n.Args {
				bytes += fmt.Sprintf(" of %d elements", a.Type.Elems())
			}
			out = append(out, n.Op.String()+bytes)
		}
	}
	return out
}
