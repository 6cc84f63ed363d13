package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
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
	Engine   *engines.Engine // the runtime that is priced; nil means planc's
	Recipe   ir.Recipe
	Headroom float64 // fraction of device memory that stays free
	Pins     Pins
	// reports whether something else, such as the file of a trainer, can express a plan; nil expresses all. The search
	// offers no other plan, except one whose recomputation is expressed only with another value of zero.
	Expresses func(*ir.Plan) bool
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

	// if not nil, receives the progress of search.Search and search.SearchWithGiven from time to time
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
				d.Capacity = n.Attr.Max
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

// DefaultMoESlack is the default capacity factor of experts. Tokens without a slot wait for the next round, so a
// small factor costs time but drops nothing.
const DefaultMoESlack = 1.25

// SerialPlan returns the plan of one rank.
func (d Dims) SerialPlan(micro int, precision ir.Precision) ir.Plan {
	p := ir.SerialPlan(d.Layers, micro, precision)
	if d.Experts > 0 {
		p.MoESlack = DefaultMoESlack
	}
	return p
}

// Validate returns an error if the question itself is invalid.
func (p *Problem) Validate() error {
	c := p.Cluster
	if e := p.PricedEngine(); c.IsCPU() && !e.Own {
		return fmt.Errorf("train.engine %s is priced on GPUs alone; on a CPU planc is", e.Name)
	}
	if _, ok := c.DeviceOf(&p.PricedEngine().Kernels, p.Computes()); !ok {
		return fmt.Errorf("%s does not compute in %s; its peak_tflops are those of %s", c.GPU.Name, p.Computes(),
			strings.Join(slices.Sorted(maps.Keys(c.GPU.PeakTFLOPS)), ", "))
	}
	if c.Nodes > 1 && len(c.Network) == 0 {
		return fmt.Errorf("%d nodes, and cluster %s has no network", c.Nodes, c.Name)
	}
	return nil
}

// PricedEngine returns the runtime that is priced.
func (p *Problem) PricedEngine() *engines.Engine {
	if p.Engine == nil {
		return engines.PlancEngine
	}
	return p.Engine
}

// Computes returns the number format that matmuls compute in.
func (p *Problem) Computes() string {
	if p.GEMM != "" {
		return p.GEMM
	}
	return costmodel.ComputeName(p.Precision.Compute)
}

// Progress is the progress of a search.
type Progress struct {
	Done, Families int               // families processed (0 while they are listed), and their number
	Best           costmodel.Seconds // step of the best plan so far; 0 if there is none
}

// Trial is a question with a change.
type Trial struct {
	Name    string
	Set     map[string]any
	Problem Problem
}
