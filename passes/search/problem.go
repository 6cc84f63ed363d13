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
	// logical, with the job's sequence length and element type; its batch size is ignored
	Model       *ir.Model
	Cluster     *costmodel.Cluster
	GlobalBatch int // sequences per step
	Precision   ir.Precision
	// number format of matmuls, as cluster files name it; "" means Precision.Compute
	GEMM     string
	Engine   *costmodel.Engine // the runtime that is priced; nil means planc's
	Recipe   ir.Recipe
	Headroom float64 // fraction of device memory that stays free
	Pins     Pins
	// which of the plans that predictions cannot rank is recommended; "" means PreferRobust
	Prefer string
	// if above 0, the recommended plan takes at most this long, unless even the fastest takes longer
	MaxStep costmodel.Seconds

	// devices per node of the hardware, if Cluster uses fewer; used to find changes that would fit
	MaxDevices int

	// returns the job in narrower number formats, the widest first; the first that fits is offered. Nil if there are
	// none.
	Narrower func() []Trial

	// returns the model at another sequence length, to find changes that would fit; nil if not available
	WithSeq func(seq int) *ir.Model

	// if not nil, receives the progress of [Search] and [SearchWithGiven] from time to time
	Watch func(Progress)
}

// Values of [Problem.Prefer].
const (
	PreferRobust  = "robust"
	PreferFastest = "fastest"
)

// Dims are the sizes of a model that decide which plans are legal. A size is 0 if the model has no such dim.
type Dims struct {
	Layers, Seq, Hidden, Vocab, FFN int
	KVHeads                         int // number of K/V heads
	Group                           int // query heads per K/V head
	// experts per block, the width of each, and how many experts a token is sent to; 0 without experts
	Experts, ExpertFFN, Choices int
	// tokens of a sequence that an expert accepts; 0 means all
	Capacity int
	// the model begins with an embedding, and ends with a head
	Embed, Head bool
}

// DimsOf reads the sizes from a model's blocks.
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

// Heads returns the number of query heads.
func (d Dims) Heads() int { return d.KVHeads * d.Group }

// expertSlack is the default capacity factor of experts. Tokens without a slot wait for the next round, so a small
// factor costs time but drops nothing.
const expertSlack = 1.25

// plain returns the plan of one rank.
func (d Dims) plain(micro int, precision ir.Precision) ir.Plan {
	p := ir.SerialPlan(d.Layers, micro, precision)
	if d.Experts > 0 {
		p.MoESlack = expertSlack
	}
	return p
}

// roundPart returns the part of a node's slots that evenly distributed tokens fill, or 1 if the node has no slots.
func roundPart(n *ir.Node, tokens int, sent *ir.Node) float64 {
	if !n.Attr.Round || sent == nil {
		return 1
	}
	experts, _ := sent.Outs[0].Type.Extent(ir.Expert)
	slots, _ := sent.Outs[0].Type.Extent(ir.SlotDim)
	choices, _ := sent.Args[1].Type.Extent(ir.Choice)
	return float64(choices.Size*tokens) / float64(experts.Size*slots.Size)
}

// modelFlops returns the model's flops per sequence on one device: three times the matmul and attention flops of the
// forward pass.
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

// flopsFormula names how modelFlops counts. Attention counts only the pairs of positions that attend to each other.
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

// check returns an error if the question itself is invalid.
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
