package rank

import (
	"slices"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// executor holds what a rank needs to execute its stage's schedule.
type executor struct {
	actions []program.Action
	chunks  []*chunk
	block   Block
	sends   int // gradients sent so far; they alternate between two buffers
	sent    [2]*comm.Pipe
	next    int // index of the action after the current one; outside of a step there is none
	// offset of the buffer of a preposted receive
	received int
	spare    int    // offset of the memory after the activation buffers
	dy, dx   int    // offsets of the two buffers of gradients between blocks
	split    bool   // the backward pass is split: weight gradients have their own passes
	waiting  []int  // per bucket, number of pieces whose gradients are incomplete
	cleared  []part // parts of the arena that are zeroed before each step: gradients that nothing writes first
	gathers  paramGathers
	fetch    doubleBuffer // for gathered parameters
	scatter  doubleBuffer // for gradients that are scattered after each block
}

// chunk is a Chunk with its pipes to the chunks before and after it, which are nil at the ends of the model.
type chunk struct {
	*program.Chunk
	layers           []*layer
	reverse          []visit    // layers in the order of the backward pass
	from, to         *comm.Pipe // receive inputs and send outputs
	gradFrom, gradTo *comm.Pipe
	done             map[program.ActionKind]int // passes of each kind in this step
}

// newExecutor prepares the execution of the rank's stage.
func newExecutor(r *Rank) (*executor, error) {
	p, s := r.Program, r.Stage
	actions, err := program.ParseSchedule(s.Schedule)
	if err != nil {
		return nil, err
	}
	e := &executor{actions: actions, next: len(actions), waiting: make([]int, len(s.Buckets))}
	e.split = slices.ContainsFunc(actions, func(a program.Action) bool { return a.Kind == program.WeightGrad })
	work := s.Arena.Workspace
	e.dy, e.dx = work.Offset+work.Size-2*p.Stream, work.Offset+work.Size-p.Stream
	e.block.Work, e.block.Logits = work.Offset, s.Arena.Logits.Offset
	end := s.Arena.Comm.Offset + s.Arena.Comm.Size
	e.scatter = newTurns(end-2*s.Scatter, s.Scatter)
	e.fetch = newTurns(end-2*s.Scatter-2*s.Gather, s.Gather)
	e.received = e.fetch.at - p.Stream
	e.spare = spareMemory(s)
	for i := range s.Chunks {
		c, err := newChunk(r, &s.Chunks[i])
		if err != nil {
			return nil, err
		}
		e.chunks = append(e.chunks, c)
	}
	e.cleared = clearedParts(r, e.chunks)
	e.gathers = newParamGathers(r, e.chunks)
	return e, nil
}

// newChunk connects a chunk with the chunks before and after it.
func newChunk(r *Rank, c *program.Chunk) (*chunk, error) {
	out := &chunk{Chunk: c, layers: newLayers(r, c), done: map[program.ActionKind]int{}}
	out.reverse = reversed(c, out.layers)
	stages := r.Program.ChunkStages()
	for _, join := range []struct {
		pipe     **comm.Pipe
		kind     string
		from, to int // chunks
	}{
		{&out.from, activations, c.Index - 1, c.Index}, {&out.to, activations, c.Index, c.Index + 1},
		{&out.gradFrom, gradients, c.Index + 1, c.Index}, {&out.gradTo, gradients, c.Index, c.Index - 1},
	} {
		if min(join.from, join.to) < 0 || max(join.from, join.to) >= len(stages) {
			continue
		}
		name := pipeName(join.kind, join.from, join.to)
		*join.pipe = r.world.Pipe(name, peerOf(r, stages[join.from]), peerOf(r, stages[join.to]),
			r.Program.Batch.MicroBatches)
	}
	return out, nil
}

// peerOf returns the rank of a stage whose other coordinates equal this rank's.
func peerOf(r *Rank, stage int) int {
	id, radix := 0, 1
	for _, a := range r.Program.Mesh {
		at := r.Coord[a.Name]
		if a.Name == program.StageAxis {
			at = stage
		}
		id += at * radix
		radix *= a.Size
	}
	return id
}

// runStep runs one optimizer step on the batch in the rank's arena.
func runStep(r *Rank) {
	if r.Program.Elem == program.F64 {
		step[float64](r)
	} else {
		step[float32](r)
	}
}

func step[F tensors.Float](r *Rank) {
	CountTokens[F](r, r.Program.Tokens)
	if r.Device == nil {
		work[F](r)
	} else {
		r.exec.sends, r.exec.sent = 0, [2]*comm.Pipe{} // at the end of a step everything sent has left
		r.Device.Step(func() { work[F](r) })
	}
	r.exec.gathers.due = !r.Skip && len(r.exec.gathers.order) > 0 // a device does not know yet whether it skips
}

// work executes a step, except that it does not count tokens.
func work[F tensors.Float](r *Rank) {
	e := r.exec
	startGathers(r)
	clearGradients(r)
	for _, c := range e.chunks {
		clear(c.done)
	}
	for i := range e.waiting {
		e.waiting[i] = len(r.Stage.Buckets[i].Pieces)
	}
	e.fetch.invalidate()
	prepostReceive(r, 0)
	for i, a := range e.actions {
		e.next = i + 1
		if a.Kind == program.Finish {
			end := beginPart(r, timeline.Other, "finish", "", -1)
			readyGradients(r)
			finish[F](r)
			r.compute.End(end)
			continue
		}
		c := e.chunks[a.Chunk]
		if a.Kind != program.Forward {
			readyGradients(r)
		}
		pass := beginPass(r, a.Kind, c)
		switch a.Kind {
		case program.Forward:
			forward[F](r, c, c.done[program.Forward], false, e.nextLayer())
		case program.Backward:
			backward[F](r, c, c.done[program.Backward], e.nextLayer())
		case program.WeightGrad:
			weightGradients[F](r, c, c.done[program.WeightGrad])
		}
		r.compute.End(pass)
		c.done[a.Kind]++
	}
}

// nextLayer returns the first layer of the next pass that reads parameters; nil if there is none.
func (e *executor) nextLayer() *layer {
	for _, a := range e.actions[e.next:] {
		switch a.Kind {
		case program.Forward:
			return e.chunks[a.Chunk].layers[0]
		case program.Backward:
			return e.chunks[a.Chunk].reverse[0].layer
		}
	}
	return nil
}

// finishLayer records that the gradients of a layer are complete and starts to reduce the buckets that are now
// complete. Buckets that both ends of the pipeline share start last, because the other end completes them last.
func finishLayer[F tensors.Float](r *Rank, l *layer) {
	for i := range r.Stage.Buckets {
		b := &r.Stage.Buckets[i]
		for _, p := range b.Pieces {
			if p.Segment == l.segment && p.Layer == l.index {
				r.exec.waiting[i]--
				if r.exec.waiting[i] == 0 && !reducesLast(b) {
					StartReduce(r, i)
				}
			}
		}
	}
}

// reducesLast reports whether the bucket's reduction starts after all others, because it must wait longest.
func reducesLast(b *program.Bucket) bool { return b.TiedStages || b.ShardedGrads }

// finish ends the step: it reduces the loss, computes the global norm, clips, and runs the optimizer on every bucket.
// Parameters that other ranks have updated are gathered later, see [paramGathers].
func finish[F tensors.Float](r *Rank) {
	ReduceLoss(r, r.Program.Loss)
	r.exec.scatter.waitBoth(r, scattering)
	buckets := r.Stage.Buckets
	for i := range buckets {
		if reducesLast(&buckets[i]) {
			StartReduce(r, i)
		}
	}
	for i := range buckets {
		WaitReduce(r, i)
	}
	ClipGradients[F](r, r.Program.World)
	if r.Skip {
		return
	}
	if r.updates != nil {
		r.updates.hyper, r.updates.clip = r.Hyper, r.Clip
	}
	for i := range buckets {
		if r.updates.postponeBucket(i) {
			continue
		}
		Optimize[F](r, i)
		if buckets[i].Shard >= 0 && !buckets[i].ShardedParams {
			taintOthers(r, i)
		}
	}
	r.updates.begin(r.ID)
}
