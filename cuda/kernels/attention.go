package kernels

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/rng"
)

// attend has the layout of Attend in attention.cuh.
type attend struct {
	Key, Least                                uint64
	Scale, Softcap, Keep                      float64
	Batch, Seq, KSeq, Heads, Group, Dim, VDim int32
	Causal, Window, More, Alibi, Drops        int32
	Pos, Half, Then, KPos, KHalf, KThen       int32
	Part                                      attendPart
	KeyAddressed                              int32
	QHeads, KHeads                            int32
}

// attendPart says which part of the whole weights the shape is.
type attendPart struct{ Batch0, Head0, Group0, HeadsAll, GroupAll, SeqAll, KSeqAll int32 }

// AttentionShape encodes a shape as kernels take it by value: 152 bytes, aligned at 8.
func AttentionShape(s *cpu.AttentionShape) []byte { return attentionShape(s, false) }

// AttentionShapeKeyed encodes a shape whose Key is the device address of a key that changes from step to
// step.
func AttentionShapeKeyed(s *cpu.AttentionShape) []byte { return attentionShape(s, true) }

func attentionShape(s *cpu.AttentionShape, keyed bool) []byte {
	n := func(v int) int32 { return int32(v) }
	is := func(v bool) int32 {
		if v {
			return 1
		}
		return 0
	}
	a := attend{Scale: s.Scale, Softcap: s.Softcap,
		Batch: n(s.Batch), Seq: n(s.Seq), KSeq: n(s.KSeq), Heads: n(s.Heads), Group: n(s.Group), Dim: n(s.Dim),
		VDim:   n(s.VDim),
		Causal: is(s.Causal), Window: n(s.Window), More: is(s.More), Alibi: is(s.Alibi), Drops: is(s.Dropout > 0),
		Pos: n(s.Pos0), Half: n(s.Half), Then: n(s.Pos1), KPos: n(s.KPos0), KHalf: n(s.KHalf), KThen: n(s.KPos1),
		Part: attendPart{n(s.Batch0), n(s.Head0), n(s.Group0), n(s.HeadsAll), n(s.GroupAll), n(s.SeqAll),
			n(s.KSeqAll)}, KeyAddressed: is(keyed)}
	ldq, ldk, _ := s.LD()
	if s.Dim > 0 {
		a.QHeads, a.KHeads = n(ldq/s.Dim), n(ldk/s.Dim)
	}
	if s.Dropout > 0 {
		// Least is below 2^53, because Dropout is below 1
		a.Key, a.Least, a.Keep = s.Key, rng.Least(s.Dropout)<<11, 1/(1-s.Dropout)
	}
	b, err := binary.Append(nil, binary.LittleEndian, &a)
	if err != nil {
		panic(err) // impossible for a struct of fixed size
	}
	return b
}

// Step is one launch of attention: the kernel's name without the type's suffix, and the geometry.
type Step struct {
	Kernel string
	Launch Launch
}

// Queries or keys per block: of the plain kernels, of those on tensor cores, and of attention on tensor
// cores with heads of 64.
const (
	plainTile = 32
	mmaTile   = 64
	wideTile  = 128
)

// onTensorCores reports whether there are tensor-core kernels for the shape.
func onTensorCores(s *cpu.AttentionShape, suffix string) bool {
	return slices.Contains(narrow, suffix) && s.Dim == s.VDim && slices.Contains(mmaDims, s.Dim) &&
		slices.Contains(Extras, extras(s))
}

// mmaDims lists the head dims of the tensor-core kernels.
var mmaDims = []int{64, 80, 96, 128}

// Extras lists what tensor-core kernels add to plain scores, as the endings of their names: "_capped" for soft
// caps, "_alibi" for ALiBi, "_drop" for dropout. What a kernel does not add costs it nothing.
var Extras = []string{"", "_capped", "_alibi", "_drop", "_capped_drop", "_alibi_drop"}

// extras returns the ending for what the shape needs. Not all endings are in [Extras].
func extras(s *cpu.AttentionShape) (ending string) {
	if s.Softcap > 0 {
		ending += "_capped"
	}
	if s.Alibi {
		ending += "_alibi"
	}
	if s.Dropout > 0 {
		ending += "_drop"
	}
	return ending
}

// onTensorCoresTable lists the attention kernels on tensor cores.
func onTensorCoresTable() (out []Kernel) {
	for _, dim := range mmaDims {
		name := fmt.Sprint("attention", dim)
		add := func(kernel, params, loop string) {
			out = append(out, Kernel{Name: name + kernel, File: name + ".cu", Params: params, Types: narrow, Loop: loop,
				Launch: attentionwise})
		}
		for _, ending := range Extras {
			add(ending, "o:T lse:A q:T k:T v:T shape:s", "cpu.Attention")
			add("_grad_q"+ending, "dq:T dout:T q:T k:T v:T lse:A dot:A shape:s", "cpu.AttentionGrad")
			add("_grad_kv"+ending, "dk:T dv:T dout:T q:T k:T v:T lse:A dot:A shape:s", "cpu.AttentionGrad")
		}
	}
	return out
}

// Attention returns the launch for a shape and a type, such as "bf16". The arguments are those of attention
// in the table. 16-bit types with the usual head dims use tensor cores.
func Attention(s *cpu.AttentionShape, suffix string) Step {
	name, tile := "attention", plainTile
	if onTensorCores(s, suffix) {
		name, tile = fmt.Sprint(name, s.Dim), mmaTile
		if s.Dim == 64 {
			tile = wideTile
		}
		name += extras(s)
	}
	return Step{name, attentionwise(s.Batch*s.Heads*s.Group*ceil(s.Seq, tile), s.VDim)}
}

// AttentionGrad returns the three launches of the gradient, in order: do·o of each query, into scratch
// memory for Batch·Seq·Heads·Group numbers; dq; dk and dv. The arguments are those of attention_dot,
// attention_grad_q and attention_grad_kv in the table.
func AttentionGrad(s *cpu.AttentionShape, suffix string) [3]Step {
	name, ending, tile, across := "attention", "", plainTile, (ceil(s.Dim, 128)+ceil(s.VDim, 128))*128
	if onTensorCores(s, suffix) {
		name, ending, tile, across = fmt.Sprint(name, s.Dim), extras(s), mmaTile, 1
	}
	return [3]Step{
		{"attention_dot", rowwise(s.Batch*s.Seq*s.Heads*s.Group, s.VDim)},
		{name + "_grad_q" + ending, attentionwise(s.Batch*s.Heads*s.Group*ceil(s.Seq, tile), s.Dim)},
		{name + "_grad_kv" + ending, attentionwise(s.Batch*s.Heads*ceil(s.KSeq, tile), across)},
	}
}
