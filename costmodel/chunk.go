package costmodel

import "github.com/planc-dev/planc/ir"

// Cost is the time of one function of a layer on one rank.
type Cost struct {
	Compute     Seconds
	Comm        Seconds // collectives that do not overlap: the next op waits for them
	Context     Seconds // part of Comm: collectives over cp
	Experts     Seconds // part of Comm: collectives over ep and etp, which move tokens to experts and back
	Recomputed  Seconds // part of Compute: forward values of the experts that backward recomputes
	PaddedSlots Seconds // part of Compute: work of the experts on slots that no token fills
}

// Plus returns the cost of both functions.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Compute + d.Compute, c.Comm + d.Comm, c.Context + d.Context, c.Experts + d.Experts,
		c.Recomputed + d.Recomputed, c.PaddedSlots + d.PaddedSlots}
}

// Sum returns compute plus communication.
func (c Cost) Sum() Seconds { return c.Compute + c.Comm }

// Layers is a run of Count equal layers of a segment, starting with layer From.
type Layers struct {
	Segment, From, Count int
	Forward, Backward    Cost
	Weights              Cost    // second part of a split backward pass, which Backward does not include
	Recomputed           Seconds // part of Backward's arithmetic that recomputes forward values
	// backward first runs the forward pass of groups of this many layers again; 0: it does not
	Every int
	// a layer's parameters are gathered before each use, its gradients are reduce-scattered after each backward
	Fetch, Scatter Seconds
}

// Chunk is a run of layers on one stage, with times.
type Chunk struct {
	Runs       []Layers
	From       int     // offset in the model of the first run's layers from those in Runs
	Split      bool    // backward is split: weight gradients are computed in its second part
	Apart      bool    // the stage has other chunks, so that the pass before this one belongs to other layers
	Output     Seconds // time of sending the output to the next chunk
	Grad       Seconds // time of sending the input's gradient to the previous chunk
	CopyInput  Seconds // time of copying the input from the buffer into which it was received
	CopyGrad   Seconds // time of copying the gradient of the output from there
	Waits      bool    // each pass ends when its sends are complete
	Contention         // for transfers during each pass; its Slows also applies to transfers once per step
	Host       Seconds // the chunk's share of the engine's host time per micro-batch, in addition to its layers
}

// Pass is the time of a chunk's pass over a micro-batch, in parts that add up to Total.
type Pass struct {
	Compute, Recompute, TPComm   Seconds
	CPComm, EPComm               Seconds
	ExpertRecompute, ExpertEmpty Seconds
	// waiting for parameters and gradients to be transferred, and the slowdown of compute by these transfers
	Exposed  Seconds
	Messages Seconds     // copying what was received, and waiting until sends are complete
	Tail     Seconds     // transfer of gradients that continues after the pass
	done     []layerDone // for each layer in the order of the pass, if it is not a forward pass
}

// Total returns the duration of the pass.
func (p *Pass) Total() Seconds {
	return p.Compute + p.Recompute + p.ExpertRecompute + p.ExpertEmpty + p.TPComm + p.CPComm + p.EPComm +
		p.Exposed + p.Messages
}

// layerDone is the time at which a layer has its gradients.
type layerDone struct {
	segment, layer int
	at             Seconds
}

// visit is one function that a pass runs.
type visit struct {
	segment, layer int
	gradient       bool // afterwards the layer has its gradients, if this pass computes those of weights
	cost           Seconds
	fetch, scatter Seconds
}

// visits returns the functions of a pass in order.
func (c *Chunk) visits(kind ir.ActionKind) []visit {
	layers, repeated := 0, 0
	for i := range c.Runs {
		layers += c.Runs[i].Count
		if c.Runs[i].Every > 0 {
			repeated += c.Runs[i].Count
		}
	}
	if kind != ir.Backward {
		repeated = 0
	}
	out := make([]visit, 0, layers+repeated)
	add := func(r *Layers, k int, cost Cost, scatter Seconds, gradient bool) {
		out = append(out, visit{r.Segment, r.From + k, gradient, cost.Sum(), r.Fetch, scatter})
	}
	if kind == ir.Forward {
		for i := range c.Runs {
			for k := range c.Runs[i].Count {
				add(&c.Runs[i], k, c.Runs[i].Forward, 0, false)
			}
		}
		return out
	}
	for i := len(c.Runs) - 1; i >= 0; i-- {
		r := &c.Runs[i]
		for k := r.Count - 1; k >= 0; k-- {
			if kind == ir.WeightGrad { // it reads no parameters
				out = append(out, r.weigh(k))
				continue
			}
			if r.Every > 0 && (k == r.Count-1 || (k+1)%r.Every == 0) {
				for g := k - k%r.Every; g <= k; g++ {
					add(r, g, r.Forward, 0, false)
				}
			}
			scatter := r.Scatter
			if c.Split && r.Weights.Sum() > 0 {
				scatter = 0
			}
			add(r, k, r.Backward, scatter, true)
		}
	}
	return out
}

// weigh returns a layer's part of the second part of a split backward pass.
func (r *Layers) weigh(k int) visit {
	v := visit{segment: r.Segment, layer: r.From + k, gradient: true, cost: r.Weights.Sum()}
	if v.cost > 0 {
		v.scatter = r.Scatter
	}
	return v
}

// Pass returns the time of a pass over a micro-batch. Parameters are double-buffered: a layer's parameters are gathered
// while the previous layer computes. Gradients are double-buffered too, and overlap what follows; both use one stream.
// The first layer's parameters are there already if the previous pass was of the same chunk, because that pass ended
// with the same layer. Otherwise they were gathered during the previous pass's last layer, which is assumed to be as
// long as this one's. In the steady state a pass is not shorter than the transfers of its stream. Without overlap
// everything runs in sequence.
func (c *Chunk) Pass(kind ir.ActionKind, overlap bool) Pass {
	if kind == ir.WeightGrad && !c.Split {
		return Pass{}
	}
	p := c.parts(kind)
	work := p.Total()
	f := &flow{overlap: overlap}
	vs := c.visits(kind)
	if kind != ir.Forward {
		p.done = make([]layerDone, 0, len(vs))
	}
	if len(vs) > 0 && c.Apart && vs[0].fetch > 0 {
		f.moved = vs[0].fetch
		f.ready = max(0, vs[0].fetch-vs[len(vs)-1].cost)
	}
	for i, v := range vs {
		next := Seconds(0)
		if i+1 < len(vs) && (vs[i+1].segment != v.segment || vs[i+1].layer != v.layer) {
			next = vs[i+1].fetch
		}
		f.visit(v, next)
		if v.gradient {
			p.done = append(p.done, layerDone{v.segment, v.layer, f.now})
		}
	}
	end := max(f.now, f.moved)
	if !overlap {
		end = work + f.moved
	}
	p.Exposed = max(0, end-work)
	if overlap {
		p.Exposed = c.Contention.Added(work, f.moved, p.Exposed)
	}
	p.Tail = max(0, f.free-work-p.Exposed)
	copied, sent := c.messages(kind)
	for i := range p.done {
		p.done[i].at += copied
	}
	p.Messages = copied + sent
	return p
}

// messages returns how long a pass first copies what was received, and finally waits until its send is complete.
func (c *Chunk) messages(kind ir.ActionKind) (copied, sent Seconds) {
	switch kind {
	case ir.Forward:
		copied, sent = c.CopyInput, c.Output
	case ir.Backward:
		copied, sent = c.CopyGrad, c.Grad
	}
	if !c.Waits {
		sent = 0
	}
	return copied, sent
}

// parts returns a pass's own arithmetic and collectives.
func (c *Chunk) parts(kind ir.ActionKind) Pass {
	p := Pass{}
	if kind == ir.Forward {
		p.Compute = c.Host
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		cost, n := r.Forward, Seconds(r.Count)
		switch kind {
		case ir.WeightGrad:
			cost = r.Weights
		case ir.Backward:
			cost = r.Backward
			cost.Compute -= r.Recomputed
			p.Recompute += n * r.Recomputed
			if r.Every > 0 {
				p.Recompute += n * (r.Forward.Compute - r.Forward.PaddedSlots)
				p.ExpertEmpty += n * r.Forward.PaddedSlots
				p.comm(r.Forward, n)
			}
		}
		p.Compute += n * (cost.Compute - cost.Recomputed - cost.PaddedSlots)
		p.ExpertRecompute += n * cost.Recomputed
		p.ExpertEmpty += n * cost.PaddedSlots
		p.comm(cost, n)
	}
	return p
}

// comm adds n times the collectives of a cost.
func (p *Pass) comm(c Cost, n Seconds) {
	p.TPComm += n * (c.Comm - c.Context - c.Experts)
	p.CPComm += n * c.Context
	p.EPComm += n * c.Experts
}

// flow is the state of a pass: compute, and the stream that transfers parameters and gradients.
type flow struct {
	overlap    bool
	now, free  Seconds    // when compute and the stream have finished their work so far
	ready      Seconds    // when the next layer's parameters are there
	moved      Seconds    // total transfer time so far
	sent       [2]Seconds // when the gradients in each buffer have been sent
	scattering int
}

// visit runs a layer while the next layer's parameters are gathered, which takes next.
func (f *flow) visit(v visit, next Seconds) {
	f.moved += next + v.scatter
	if !f.overlap {
		f.now += v.cost + next + v.scatter
		return
	}
	start := max(f.now, f.ready)
	if v.scatter > 0 {
		start = max(start, f.sent[f.scattering])
	}
	f.ready = 0
	if next > 0 {
		f.free = max(f.free, start) + next
		f.ready = f.free
	}
	f.now = start + v.cost
	if v.scatter > 0 {
		f.free = max(f.free, f.now) + v.scatter
		f.sent[f.scattering] = f.free
		f.scattering = 1 - f.scattering
	}
}
