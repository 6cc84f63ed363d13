package costmodel

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// gathersAhead returns how long the first micro-batch's forward pass through all stages waits for parameters that are
// gathered meanwhile. Each stage gathers its buckets one after the other, in the order in which its layers read them,
// from the beginning of the step. The whole schedule is assumed to wait for this pass. Without a pipeline it does. With
// one, this is an upper bound.
func (s *Step) gathersAhead() Seconds {
	stages := make([]stageGathers, len(s.Stages))
	chunks := 0
	for i := range s.Stages {
		stages[i] = newStageGathers(&s.Stages[i])
		chunks += len(s.Stages[i].Chunks)
	}
	delayed, free := Seconds(0), Seconds(0) // ends of the passes so far, with and without gathers
	for c := range chunks {
		i, j := s.positionOf(c)
		chunk, st := &s.Stages[i].Chunks[j], &stages[i]
		delayed += chunk.Host
		free += chunk.Host
		for _, v := range chunk.visits(ir.Forward) {
			delayed = max(delayed, st.next()) + v.cost
			free += v.cost
		}
		delayed += chunk.Output
		free += chunk.Output
	}
	return delayed - free
}

// positionOf returns the stage and the position there of a chunk of the model.
func (s *Step) positionOf(chunk int) (stage, position int) {
	for i, chunks := range s.Timetable.Chunks {
		if j := slices.Index(chunks, chunk); j >= 0 {
			return i, j
		}
	}
	return 0, 0 // a timetable without chunks is that of one stage
}

// stageGathers are the times at which the layers of a stage can start, in the order of its first forward passes.
type stageGathers struct {
	ready []Seconds
	layer int // the next layer
}

// next returns when the next layer has its parameters.
func (g *stageGathers) next() Seconds {
	g.layer++
	return g.ready[g.layer-1]
}

// newStageGathers finds the order of a stage's gathers. The last layer reads a bucket whose layer is on another stage:
// a tied embedding.
func newStageGathers(st *Stage) stageGathers {
	at := map[[2]int]int{}
	for j := range st.Chunks {
		c := &st.Chunks[j]
		for _, v := range c.visits(ir.Forward) {
			if v.segment == c.Runs[0].Segment {
				v.layer += c.From
			}
			at[[2]int{v.segment, v.layer}] = len(at)
		}
	}
	type gather struct {
		layer int
		time  Seconds
	}
	gathers := make([]gather, 0, len(st.Buckets))
	for i := range st.Buckets {
		b := &st.Buckets[i]
		layer, ok := at[[2]int{b.Segment, b.Layer}]
		if !ok {
			layer = len(at) - 1
		}
		gathers = append(gathers, gather{layer, b.Gather})
	}
	slices.SortStableFunc(gathers, func(a, b gather) int { return cmp.Compare(a.layer, b.layer) })
	g, sum := stageGathers{ready: make([]Seconds, len(at))}, Seconds(0)
	for _, x := range gathers {
		sum += x.time
		g.ready[x.layer] = sum
	}
	return g
}
