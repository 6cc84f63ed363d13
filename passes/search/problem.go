package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// Problem is the question: which plan trains this model on this cluster fastest?
type Problem struct {
	Model       *ir.Model // logical, its sequence length and element type the job's; its batch does not matter
	Cluster     *costmodel.Cluster
	GlobalBatch int // sequences a step
	Precision   ir.Precision
	GEMM        string            // what matmuls compute in, as cluster files name it; "": Precision.Compute
	Engine      *costmodel.Engine // whose runtime is priced; nil: planc's
	Recipe      ir.Recipe
	Headroom    float64 // fraction of device memory that stays free
	Pins        Pins
	Prefer      string            // of the plans that predictions do not tell apart; "": PreferRobust
	MaxStep     costmodel.Seconds // above 0: the recommended plan takes no longer, if the fastest does not

	MaxDevices int // of a node that the hardware has, where Cluster takes fewer; for what would fit

	// the job with narrower numbers, the widest first, of which the first that fits is offered; nil: there are none
	Narrower func() []Trial

	WithSeq func(seq int) *ir.Model // the model at another sequence length, for what would fit; nil: not to be had

	Watch func(Progress) // is told now and then how far [Search] or [SearchWithGiven] is with the best plan; nil: nobody asks
}

// What a problem may prefer.
const (
	PreferRobust  = "robust"
	PreferFastest = "fastest"
)

// Dims are the sizes of a model that decide which plans are legal; 0 where it has no such dim.
type Dims struct {
	Layers, Seq, Hidden, Vocab, FFN int
	KVHeads                         int // K/V heads
	Group                           int // query heads of one K/V head
	// of a block; the width of each, and how many a token goes to; 0 where there are none
	Experts, ExpertFFN, Choices int
	Capacity                    int  // choices of a sequence that an expert takes; 0: all
	Embed, Head                 bool // the model begins with an embedding, ends with a head
}

// DimsOf reads the sizes off a model's blocks.
func DimsOf(m *ir.Model) Dims {
	size := map[ir.Dim]int{}
	see := func(v *ir.Value) {
		for _, e := range v.Type.Dims {
			size[e.Dim] = max(size[e.Dim], e.Size)
		}
	}
	first, last := m.Segments[0], m.Segments[len(m.Segments)-1]
	d := Dims{Embed: first.Forward.Value(passes.StreamName) == nil,
		Head: len(m.Segments) > 1 && len(last.Forward.Outputs) == 0}
	for _, s := range m.Segments {
		if s.Numbered() {
			d.Layers += s.Count
		}
		for _, v := range s.Forward.Inputs {
			see(v)
		}
		for _, n := range s.Forward.Nodes {
			if n.Op == ir.OpLimit {
				d.Capacity = n.Attr.Most
			}
			for _, o := range n.Outs {
				see(o)
			}
		}
	}
	d.Seq, d.Hidden, d.Vocab, d.FFN = size[ir.Seq], size[ir.Hidden], size[ir.Vocab], size[ir.FFN]
	d.Experts, d.ExpertFFN, d.Choices = size[ir.Expert], size[ir.ExpertFFN], size[ir.Choice]
	d.KVHeads, d.Group = size[ir.Head], size[ir.Group]
	if d.KVHeads > 0 && d.Group == 0 {
		d.Group = 1
	}
	return d
}

// Heads is the number of query heads.
func (d Dims) Heads() int { return d.KVHeads * d.Group }

// expertSlack is how many more places experts have than evenly spread tokens need. What finds none waits for the next
// round, so that it costs time and no more.
const expertSlack = 1.25

// withoutRecompute is the plan of one rank.
func (d Dims) plain(micro int, precision ir.Precision) ir.Plan {
	p := ir.SerialPlan(d.Layers, micro, precision)
	if d.Experts > 0 {
		p.MoESlack = expertSlack
	}
	return p
}

// roundPart is the part of the places of a node that evenly spread tokens take: 1 where it has none.
func roundPart(n *ir.Node, tokens int, sent *ir.Node) float64 {
	if !n.Attr.Round || sent == nil {
		return 1
	}
	experts, _ := sent.Outs[0].Type.Extent(ir.Expert)
	slots, _ := sent.Outs[0].Type.Extent(ir.SlotDim)
	choices, _ := sent.Args[1].Type.Extent(ir.Choice)
	return float64(choices.Size*tokens) / float64(experts.Size*slots.Size)
}

// modelFlops are the model's flops of one sequence: three times the matmuls and attention of the forward pass, as
// if on one device.
func modelFlops(m *ir.Model) float64 {
	sum := 0.0
	for _, s := range m.Segments {
		batch, tokens := 1, 0
		var sent *ir.Node
		for _, n := range s.Forward.Nodes {
			if n.Op == ir.OpDispatch {
				sent, tokens = n, n.Args[1].Type.Elems()/n.Args[1].Type.Dims[len(n.Args[1].Type.Dims)-1].Size
			}
			if costmodel.KindOf(n.Op) == costmodel.Vector {
				continue
			}
			for _, o := range n.Outs {
				if e, ok := o.Type.Extent(ir.Batch); ok {
					batch = e.Size
				}
			}
			sum += float64(3 * float64(s.Count) * n.Flops(ir.Mesh{}) * roundPart(n, tokens, sent) / float64(batch))
		}
	}
	return sum
}

// flopsFormula names how modelFlops counts: attention's by the pairs of positions that see each other.
func flopsFormula(m *ir.Model) string {
	const matmuls = "6N + "
	for _, s := range m.Segments {
		for _, n := range s.Forward.Nodes {
			if n.Op != ir.OpAttention {
				continue
			}
			keys, _ := n.Args[1].Type.Extent(ir.KSeq)
			switch {
			case n.Attr.Window > 0 && n.Attr.Window < keys.Size:
				return matmuls + "windowed attention"
			case n.Attr.Causal:
				return matmuls + "causal attention"
			}
			return matmuls + "attention"
		}
	}
	return matmuls[:2]
}

// check says what is wrong with the question itself.
func (p *Problem) check() error {
	c := p.Cluster
	if e := p.engine(); c.IsCPU() && !e.Own {
		return fmt.Errorf("train.engine %s is priced on GPUs alone; on a CPU planc is", e.Name)
	}
	if _, ok := c.DeviceOf(p.engine(), p.Computes()); !ok {
		return fmt.Errorf("%s does not compute in %s; its peak_tflops are those of %s", c.GPU.Name, p.Computes(),
			strings.Join(slices.Sorted(maps.Keys(c.GPU.PeakTFLOPS)), ", "))
	}
	if c.Nodes > 1 && len(c.Network) == 0 {
		return fmt.Errorf("%d nodes, and cluster %s has no network", c.Nodes, c.Name)
	}
	return nil
}
