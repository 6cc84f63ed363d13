package costmodel

import "github.com/planc-dev/planc/ir"

// Cost is the time of one function of a layer on one rank.
type Cost struct {
	Compute     Seconds
	Comm        Seconds // collectives in line: the next op waits for them
	Context     Seconds // of Comm, those over cp
	Experts     Seconds // of Comm, those over ep and etp, of tokens on their way to experts and back
	Recomputed  Seconds // of Compute, the experts' forward values that backward makes again
	PaddedSlots Seconds // of Compute, what experts do for places that no token has
}

// Plus adds a function that follows.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Compute + d.Compute, c.Comm + d.Comm, c.Context + d.Context, c.Experts + d.Experts,
		c.Recomputed + d.Recomputed, c.PaddedSlots + d.PaddedSlots}
}

// Sum is all of it.
func (c Cost) Sum() Seconds { return c.Compute + c.Comm }

// Layers is a run of Count equal layers of a segment, from layer From on.
type Layers struct {
	Segment, From, Count int
	Forward, Backward    Cost
	Weights              Cost    // of a split backward: its second part, which Backward does not hold
	Recomputed           Seconds // of Backward's arithmetic, what makes forward values again
	Every                int     // backward runs groups of so many layers forward again first; 0: it does not
	// a layer's parameters are gathered before each use, its gradients scattered after each backward
	Fetch, Scatter Seconds
}

// Chunk is a run of layers on one stage, in times.
type Chunk struct {
	Runs       []Layers
	From       int     // what the layers of the first run's segment are further on in the model than Runs says
	Split      bool    // backward is: gradients of parameters come with its second part
	Apart      bool    // the stage has other chunks: what runs before a pass is of other layers
	Output     Seconds // sending what it hands on, to the chunk after it
	Grad       Seconds // sending the gradient of what it took, to the chunk before it
	Waits      bool    // each pass ends when what it sends has gone
	Contention         // of what moves with each pass; its Slows is also that of what moves once a step
	Host       Seconds // of the engine's own time for a micro-batch beside its layers, the chunk's part
}

// Pass is what a chunk's pass over a micro-batch takes, by parts that add up to Total.
type Pass struct {
	Compute, Recompute, TPComm   Seconds
	CPComm, EPComm               Seconds
	ExpertRecompute, ExpertEmpty Seconds
	// waiting for parameters to come and for gradients to go, and what compute loses to them
	Exposed Seconds
	Sent    Seconds // waiting until what it sends has gone
	Tail    Seconds // gradients that are on their way when the pass ends
	done    []layerDone
}

// Total is how long the pass takes.
func (p *Pass) Total() Seconds {
	return p.Compute + p.Recompute + p.ExpertRecompute + p.ExpertEmpty + p.TPComm + p.CPComm + p.EPComm + p.Exposed + p.Sent
}

// layerDone says when in a pass a layer has its gradients.
type layerDone struct {
	segment, layer int
	at             Seconds
}

// visit is a function that a pass runs.
type visit struct {
	segment, layer int
	cost           Seconds
	fetch, scatter Seconds
}

// visits are the functions of a pass in order.
func (c *Chunk) visits(kind ir.ActionKind) []visit {
	var out []visit
	add := func(r *Layers, k int, cost Cost, scatter Seconds) {
		out = append(out, visit{r.Segment, r.From + k, cost.Sum(), r.Fetch, scatter})
	}
	if kind == ir.Forward {
		for i := range c.Runs {
			for k := range c.Runs[i].Count {
				add(&c.Runs[i], k, c.Runs[i].Forward, 0)
			}
		}
		return out
	}
	for i := len(c.Runs) - 1; i >= 0; i-- {
		r := &c.Runs[i]
		for k := r.Count - 1; k >= 0; k-- {
			if kind == ir.Weigh { // which reads no parameters
				out = append(out, r.weigh(k))
				continue
			}
			if r.Every > 0 && (k == r.Count-1 || (k+1)%r.Every == 0) {
				for g := k - k%r.Every; g <= k; g++ {
					add(r, g, r.Forward, 0)
				}
			}
			scatter := r.Scatter
			if c.Split && r.Weights.Sum() > 0 {
				scatter = 0
			}
			add(r, k, r.Backward, scatter)
		}
	}
	return out
}

// weigh is a layer's part of the second part of a split backward.
func (r *Layers) weigh(k int) visit {
	v := visit{segment: r.Segment, layer: r.From + k, cost: r.Weights.Sum()}
	if v.cost > 0 {
		v.scatter = r.Scatter
	}
	return v
}

// Pass is a pass over a micro-batch. Parameters of a layer begin to come when the layer before it begins, as one buffer
// is in use and one is filled; gradients go beside what follows, from two buffers too; both take turns on one stream.
// The first layer's parameters are there if the pass before was of this chunk, since it ended with the same layer; else
// they came beside that pass's last layer, which is taken to be as long as this one's. In the long run a pass is no
// shorter than what its stream has to move. Without overlap all is done in turn.
func (c *Chunk) Pass(kind ir.ActionKind, overlap bool) Pass {
	if kind == ir.Weigh && !c.Split {
		return Pass{}
	}
	p := c.parts(kind)
	work := p.Total()
	f := &flow{overlap: overlap}
	vs := c.visits(kind)
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
		p.done = append(p.done, layerDone{v.segment, v.layer, f.now})
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
	if c.Waits {
		p.Sent = map[ir.ActionKind]Seconds{ir.Forward: c.Output, ir.Backward: c.Grad}[kind]
	}
	return p
}

// parts are a pass's own arithmetic and collectives.
func (c *Chunk) parts(kind ir.ActionKind) Pass {
	p := Pass{}
	if kind == ir.Forward {
		p.Compute = c.Host
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		cost, n := r.Forward, Seconds(r.Count)
		switch kind {
		case ir.Weigh:
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

// flow is a pass as it goes on: compute, and the stream that moves parameters and gradients.
type flow struct {
	overlap    bool
	now, free  Seconds    // when compute and the stream have done what they did
	ready      Seconds    // when the next layer's parameters are there
	moved      Seconds    // what the stream had to do in all
	gone       [2]Seconds // when the gradients in each buffer have gone
	scattering int
}

// visit does a layer, while the parameters of the one that follows come, which takes next.
func (f *flow) visit(v visit, next Seconds) {
	f.moved += next + v.scatter
	if !f.overlap {
		f.now += v.cost + next + v.scatter
		return
	}
	start := max(f.now, f.ready)
	if v.scatter > 0 {
		start = max(start, f.gone[f.scattering])
	}
	f.ready = 0
	if next > 0 {
		f.free = max(f.free, start) + next
		f.ready = f.free
	}
	f.now = start + v.cost
	if v.scatter > 0 {
		f.free = max(f.free, f.now) + v.scatter
		f.gone[f.scattering] = f.free
		f.scattering = 1 - f.scattering
	}
}
