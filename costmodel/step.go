package costmodel

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Stage is the work of one pipeline stage in a step, with times.
type Stage struct {
	Chunks  []Chunk // in the model's order
	Buckets []BucketCost
	Norm    Seconds // arithmetic of the global norm, counted under the optimizer
}

// BucketCost is the cost of a bucket of gradients. Its reduction may start when layer Layer of segment Segment has its
// gradients and the previous buckets are reduced. After all reductions it is updated and gathered.
type BucketCost struct {
	Segment, Layer         int
	Last                   bool // its reduction starts after all others, when the stage's passes are finished
	TiedStages             bool // and when those of both ends of the pipeline are finished
	Reduce, Update, Gather Seconds
}

// Step is a step's schedule with times: the passes of all stages, the reductions that overlap the last of them, and the
// update.
type Step struct {
	Stages    []Stage // chunks that share their Runs have the same times, except those of messages
	Timetable *ir.Timetable
	Other     Seconds // token count, loss and norm collectives, and the step's own overhead
	Overlap   bool    // collectives of buckets overlap compute
	Preposted bool    // receives are; see [Pipeline]
	// buckets are gathered during the next step's first forward pass, which can overlap all of them
	Ahead   bool
	ByLayer bool // the same, but each layer waits for the buckets that it reads; see gathersAhead
}

// Time is a step's time by the parts of contract.md: exposed seconds of the critical path.
type Time struct {
	Compute         Seconds `json:"compute"`
	Recompute       Seconds `json:"recompute"`
	ExpertRecompute Seconds `json:"expert_again" since:"2026-11-22"`
	ExpertEmpty     Seconds `json:"expert_empty" since:"2026-11-22"`
	TPComm          Seconds `json:"tp_comm"`
	CPComm          Seconds `json:"cp_comm"`
	EPComm          Seconds `json:"ep_comm"`
	PPComm          Seconds `json:"pp_comm"`
	PPBubble        Seconds `json:"pp_bubble"`
	DPComm          Seconds `json:"dp_comm"`
	Optimizer       Seconds `json:"optimizer"`
	Offload         Seconds `json:"offload"`
	Other           Seconds `json:"other"`
}

// TimeParts names the parts in order.
var TimeParts = []string{"compute", "recompute", "expert_again", "expert_empty", "tp_comm", "cp_comm", "ep_comm",
	"pp_comm", "pp_bubble", "dp_comm", "optimizer", "offload", "other"}

func (t *Time) parts() []*Seconds {
	return []*Seconds{&t.Compute, &t.Recompute, &t.ExpertRecompute, &t.ExpertEmpty, &t.TPComm, &t.CPComm, &t.EPComm,
		&t.PPComm, &t.PPBubble, &t.DPComm, &t.Optimizer, &t.Offload, &t.Other}
}

// Part returns a part by its name.
func (t Time) Part(name string) Seconds {
	for i, p := range t.parts() {
		if TimeParts[i] == name {
			return *p
		}
	}
	panic("costmodel: a step's time has no part " + name)
}

// Total returns the time of the step.
func (t Time) Total() Seconds {
	sum := Seconds(0)
	for _, p := range t.parts() {
		sum += *p
	}
	return sum
}

// passTimes are a chunk's passes over a micro-batch.
type passTimes struct{ forward, backward, weights Pass }

// all returns the passes in order.
func (p *passTimes) all() [3]*Pass { return [3]*Pass{&p.forward, &p.backward, &p.weights} }

// stepRun is the state of a simulated step.
type stepRun struct {
	*Step
	passes [][]*passTimes // of each stage's chunks
	ends   []Seconds      // end of each stage's passes
	last   [][]Seconds    // start of the last pass of each stage's chunks that computes weight gradients
	end    Seconds        // end of all passes

	// memory that is reused for each stage
	gradients gradientTimes
	queue     []readyBucket
}

// readyBucket is a bucket with the time from which on it can be reduced.
type readyBucket struct {
	at     Seconds
	bucket *BucketCost
}

// Simulate runs the schedule and attributes the seconds to parts. Passes are those of the stage with the most work. The
// additional time of the pipeline is pp_comm as far as it would vanish if messages took no time, and pp_bubble
// otherwise. The rest follows the last pass: reductions, the norm, which waits for those of all stages, and the longest
// update.
func (s *Step) Simulate() Time {
	r := s.passed()
	t := r.busiest()
	work := t.Total()
	free := max(work, r.play(false))
	t.PPBubble = free - work
	t.PPComm += max(0, r.play(true)-free)
	t.DPComm += r.tail()
	t.Other += s.Other
	update, exposed := s.update()
	t.Optimizer += update
	t.DPComm += exposed + s.firstFetch()
	return t
}

// Total returns Simulate's total without its parts.
func (s *Step) Total() Seconds {
	r := s.passed()
	t := r.busiest()
	end := max(t.Total(), r.play(true))
	update, exposed := s.update()
	return end + r.tail() + s.Other + update + exposed + s.firstFetch()
}

// firstFetch returns how long a step waits for the parameters of its first layer if they are gathered before each use.
// Nothing overlaps this gather, because the parameters are new. Otherwise the previous pass hides it, see [Chunk.Pass].
func (s *Step) firstFetch() Seconds {
	if c := &s.Stages[0].Chunks[0]; !c.Apart && len(c.Runs) > 0 {
		return c.Runs[0].Fetch
	}
	return 0
}

// tail returns how long reductions continue after the end of all passes.
func (r *stepRun) tail() Seconds {
	reduced := r.end
	for i := range r.Stages {
		reduced = max(reduced, r.reduced(i))
	}
	return reduced - r.end
}

// Work returns the duration of each stage's passes.
func (s *Step) Work() []Seconds {
	r := s.passed()
	out := make([]Seconds, len(s.Stages))
	for i := range out {
		t := r.work(i)
		out[i] = t.Total()
	}
	return out
}

// busiest returns the work of the stage with the most work in its passes.
func (r *stepRun) busiest() Time {
	var best Time
	for i := range r.passes {
		if t := r.work(i); t.Total() > best.Total() {
			best = t
		}
	}
	return best
}

// work returns the work of a stage in its passes.
func (r *stepRun) work(stage int) Time {
	t, n := Time{}, Seconds(r.Timetable.Micro)
	for _, passes := range r.passes[stage] {
		for _, p := range passes.all() {
			t.Compute += n * p.Compute
			t.Recompute += n * p.Recompute
			t.ExpertRecompute += n * p.ExpertRecompute
			t.ExpertEmpty += n * p.ExpertEmpty
			t.TPComm += n * p.TPComm
			t.CPComm += n * p.CPComm
			t.EPComm += n * p.EPComm
			t.DPComm += n * p.Exposed
			t.PPComm += n * p.Messages
		}
	}
	return t
}

// passed returns the step with its passes' times.
func (s *Step) passed() *stepRun {
	r := &stepRun{Step: s}
	type same struct { // chunks with equal passes
		runs        *Layers
		input, grad Seconds
	}
	done := map[same]*passTimes{}
	for i := range s.Stages {
		cs := make([]*passTimes, len(s.Stages[i].Chunks))
		for j := range cs {
			c := &s.Stages[i].Chunks[j]
			k := same{&c.Runs[0], c.CopyInput, c.CopyGrad}
			cs[j] = done[k]
			if cs[j] == nil {
				cs[j] = &passTimes{c.Pass(ir.Forward, s.Overlap), c.Pass(ir.Backward, s.Overlap),
					c.Pass(ir.WeightGrad, s.Overlap)}
				done[k] = cs[j]
			}
		}
		r.passes = append(r.passes, cs)
	}
	return r
}

// play runs the passes, with or without the messages' times, and returns the end of the last one.
func (r *stepRun) play(send bool) Seconds {
	r.ends, r.last, r.end = make([]Seconds, len(r.Stages)), make([][]Seconds, len(r.Stages)), 0
	if len(r.Stages) == 1 {
		r.one()
		return r.end
	}
	sim := newSimulation(&Pipeline{Timetable: r.Timetable, Chunks: r.chunkTimes(send),
		Preposted: r.Preposted})
	defer sim.recycle()
	if err := sim.fold(); err != nil {
		panic(err.Error())
	}
	for i := range sim.stages {
		r.ends[i], r.last[i] = sim.stages[i].free, sim.stages[i].last
	}
	r.end = sim.end()
	return r.end
}

// one computes a step without a pipeline, whose end is the sum of its passes.
func (r *stepRun) one() {
	f, b := &r.passes[0][0].forward, &r.passes[0][0].backward
	r.end = Seconds(r.Timetable.Micro) * (f.Total() + b.Total())
	r.ends[0], r.last[0] = r.end, []Seconds{r.end - b.Total()}
}

// chunkTimes returns the chunks in the model's order.
func (r *stepRun) chunkTimes(send bool) []ChunkTime {
	n := 0
	for _, cs := range r.Timetable.Chunks {
		n += len(cs)
	}
	out := make([]ChunkTime, n)
	for i, cs := range r.Timetable.Chunks {
		for j, of := range cs {
			p, c := r.passes[i][j], &r.Stages[i].Chunks[j]
			out[of] = ChunkTime{Forward: p.forward.Total(), Backward: p.backward.Total(), Weights: p.weights.Total()}
			if send && !c.Waits {
				out[of].SendOutput, out[of].SendGradient = c.Output, c.Grad
			}
		}
	}
	return out
}

// reduced returns when a stage has reduced its buckets. Reductions run in sequence in the order in which they become
// ready, overlapping the last passes. Those that must be last start when these passes are finished.
func (r *stepRun) reduced(stage int) Seconds {
	st, now := &r.Stages[stage], r.ends[stage]
	free := Seconds(0)
	for _, passes := range r.passes[stage] {
		free = max(free, now+passes.backward.Tail, now+passes.weights.Tail)
	}
	if r.Overlap {
		r.findGradients(stage)
	}
	queue := slices.Grow(r.queue[:0], len(st.Buckets))
	for i := range st.Buckets {
		b := &st.Buckets[i]
		when := Seconds(0)
		switch {
		case b.TiedStages:
			when = max(r.ends[0], r.ends[len(r.ends)-1], free)
		case b.Last, !r.Overlap:
			when = max(now, free)
		default:
			when = r.gradients.time(b.Segment, b.Layer)
		}
		queue = append(queue, readyBucket{when, b})
	}
	r.queue = queue
	slices.SortStableFunc(queue, func(a, b readyBucket) int { return cmp.Compare(a.at, b.at) })
	end, sum := Seconds(0), Seconds(0)
	for _, q := range queue {
		if q.bucket.Reduce > 0 {
			end, sum = max(end, q.at)+q.bucket.Reduce, sum+q.bucket.Reduce
		}
	}
	done := max(now, free, end)
	if r.Overlap { // hidden reductions slowed the passes
		done += st.slows() * max(0, sum-(done-now))
	}
	return done
}

// slows returns the slowdown of a stage's compute while collectives overlap it, a fraction.
func (st *Stage) slows() Seconds {
	if len(st.Chunks) == 0 {
		return 0
	}
	return Seconds(st.Chunks[0].Slows)
}

// gradientTimes are the times at which the layers of a stage have their weight gradients, in the order of the passes:
// the last chunk first.
type gradientTimes struct {
	layers []layerDone
	next   int // where the next search begins, because buckets have nearly the same order
}

// time returns the time of a layer, 0 if the stage does not have it.
func (g *gradientTimes) time(segment, layer int) Seconds {
	for range g.layers {
		if g.next == len(g.layers) {
			g.next = 0
		}
		l := &g.layers[g.next]
		g.next++
		if l.segment == segment && l.layer == layer {
			return l.at
		}
	}
	return 0
}

// findGradients finds the times of a stage.
func (r *stepRun) findGradients(stage int) {
	g := &r.gradients
	g.layers, g.next = g.layers[:0], 0
	for j := len(r.Stages[stage].Chunks) - 1; j >= 0; j-- {
		c := &r.Stages[stage].Chunks[j]
		p := &r.passes[stage][j].backward
		if c.Split {
			p = &r.passes[stage][j].weights
		}
		for _, d := range p.done {
			if d.segment == c.Runs[0].Segment {
				d.layer += c.From
			}
			g.layers = append(g.layers, layerDone{d.segment, d.layer, r.last[stage][j] + d.at})
		}
	}
}

// update returns the longest of the stages' updates, and the gathers that it waits for. A bucket's gather overlaps the
// updates of later buckets, or the next step's first forward passes.
func (s *Step) update() (update, exposed Seconds) {
	ahead := Seconds(0)
	if s.ByLayer && s.Overlap {
		ahead = s.gathersAhead()
	}
	for i := range s.Stages {
		now, free, sum := s.Stages[i].Norm, Seconds(0), Seconds(0)
		for _, b := range s.Stages[i].Buckets {
			now += b.Update
			sum += b.Gather
			if b.Gather > 0 {
				free = max(free, now) + b.Gather
			}
		}
		wait := max(0, free-now)
		switch {
		case !s.Overlap:
			wait = sum
		case s.ByLayer:
			wait = ahead + s.Stages[i].slows()*max(0, sum-ahead)
		case s.Ahead:
			overlapped := min(sum, s.firstForward(i))
			wait = sum - overlapped + s.Stages[i].slows()*overlapped
		}
		if i == 0 || now+wait > update+exposed {
			update, exposed = now, wait
		}
	}
	return update, exposed
}

// firstForward returns how long a stage computes before it has used all of its parameters.
func (s *Step) firstForward(stage int) Seconds {
	sum := Seconds(0)
	for i := range s.Stages[stage].Chunks {
		p := s.Stages[stage].Chunks[i].parts(ir.Forward)
		sum += p.Total()
	}
	return sum
}
