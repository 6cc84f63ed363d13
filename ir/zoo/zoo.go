package zoo

import (
	"fmt"
	"maps"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Options are what a model's graph depends on beside its configuration.
type Options struct {
	SeqLen int
	Batch  int // sequences; any number: passes set it to one micro-batch of all replicas
	Elem   ir.Elem
}

// family builds the three segments' functions; it is filled in by one file a family.
type family struct {
	embed, block, head func(m *model) *ir.Func
	logits             func(m *model) *ir.Func
}

var families = map[string]family{"gpt2": gpt2, "llama": llama}

// model is what the builders of a family share.
type model struct {
	spec.Config
	opt  Options
	dims map[ir.Dim]int
}

// Build makes the logical graph of a model. The configuration is valid: spec checked it.
func Build(name string, c spec.Config, o Options) *ir.Model {
	fam, ok := families[c.Family]
	if !ok {
		panic(fmt.Sprintf("zoo: no family %q", c.Family))
	}
	m := &model{Config: c, opt: o, dims: map[ir.Dim]int{
		ir.Batch: o.Batch, ir.Seq: o.SeqLen, ir.KSeq: o.SeqLen, ir.Hidden: c.Hidden, ir.Vocab: c.Vocab,
		ir.Head: c.KVHeads, ir.Group: c.Heads / c.KVHeads, ir.HeadDim: c.HeadDim, ir.VDim: c.HeadDim,
		ir.FFN: c.FFN, ir.Position: c.MaxPositions,
	}}
	head := &ir.Segment{Name: "head", Count: 1, Forward: fam.head(m), Logits: fam.logits(m)}
	return &ir.Model{Name: name, Segments: []*ir.Segment{
		{Name: "embed", Count: 1, Forward: fam.embed(m)},
		{Name: "block", Count: c.Layers, Forward: fam.block(m)},
		head,
	}}
}

// builder begins function seg.entry of the model.
func (m *model) builder(name string) *builder {
	return newBuilder(name, m.opt.Elem, maps.Clone(m.dims))
}

// Dims of the values that blocks share.
var (
	stream = []ir.Dim{ir.Batch, ir.Seq, ir.Hidden}
	tokens = []ir.Dim{ir.Batch, ir.Seq}
)

// queries are the dims of a query's heads: K/V heads, and queries of each where there are several.
func (m *model) queries() []ir.Dim {
	if m.Heads == m.KVHeads {
		return []ir.Dim{ir.Head}
	}
	return []ir.Dim{ir.Head, ir.Group}
}

// normer declares and applies a family's norm.
type normer func(m *model, b *builder, name string, x *ir.Value) *ir.Value

// head is a decoder's last segment: the final norm, logits, the loss.
func head(norm normer) func(m *model) *ir.Func {
	return func(m *model) *ir.Func {
		b := m.builder("head.forward")
		x := b.input("x", b.elem, stream...)
		b.in(ir.Norm)
		n := norm(m, b, "ln", x)
		b.in(ir.VocabR)
		m.loss(b, b.matmul("logits", n, m.outputTable(b), ir.Batch, ir.Seq, ir.Vocab))
		return b.ret()
	}
}

// logits is what sampling runs instead of the head: one position's.
func logits(norm normer) func(m *model) *ir.Func {
	return func(m *model) *ir.Func {
		b := m.builder("head.logits")
		x := b.input("x", b.elem, stream...)
		b.in(ir.Norm)
		at := b.op("at", ir.OpSelect, ir.Attr{Dim: ir.Seq}, []ir.Dim{ir.Batch, ir.Hidden}, x)
		n := norm(m, b, "ln", at)
		b.in(ir.VocabR)
		return b.ret(b.matmul("logits", n, m.outputTable(b), ir.Batch, ir.Vocab))
	}
}

// loss ends the head: cross-entropy of the logits, over the unmasked labels.
func (m *model) loss(b *builder, logits *ir.Value) {
	labels := b.input("labels", ir.I32, tokens...)
	mask := b.input("mask", b.elem, tokens...)
	lse := b.op("lse", ir.OpLogSumExp, ir.Attr{}, tokens, logits)
	label := b.op("label", ir.OpPick, ir.Attr{}, tokens, logits, labels)
	ce := b.same("ce", ir.OpSub, ir.Attr{}, lse, label)
	counted := b.same("counted", ir.OpMul, ir.Attr{}, ce, mask)
	b.accumulate(b.op("loss", ir.OpReduceSum, ir.Attr{}, nil, counted), "loss")
}

// outputTable is the head's weight: the embedding's own, or one for itself.
func (m *model) outputTable(b *builder) *ir.Value {
	init := normal(m.InitStd)
	if m.Tied {
		init.Tied = "embed.wte"
		return b.param("wte", init, ir.Vocab, ir.Hidden)
	}
	return b.param("lm_head", init, ir.Vocab, ir.Hidden)
}

// act is the op of the configuration's activation.
func (m *model) act() ir.Op {
	return map[string]ir.Op{"gelu_new": ir.OpGelu, "gelu_pytorch_tanh": ir.OpGelu, "gelu": ir.OpGeluErf, "silu": ir.OpSilu, "relu": ir.OpRelu}[m.Activation]
}
