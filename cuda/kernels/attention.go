package kernels

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/rng"
)

// attend is attention.cuh's Attend.
type attend struct {
	Key, Least                                                               uint64
	Scale, Softcap, Keep                                                     float64
	Batch, Seq, KSeq, Heads, Group, Dim, VDim                                int32
	Causal, Window, More, Alibi, Drops                                       int32
	Pos, Half, Then, KPos, KHalf, KThen                                      int32
	Batch0, Head0, Group0, HeadsAll, GroupAll, SeqAll, KSeqAll, KeyAddressed int32
}

// AttentionShape is a shape as kernels take it by value: 144 bytes, on 8.
func AttentionShape(s *cpu.AttentionShape) []byte { return attentionShape(s, false) }

// AttentionShapeKeyed is a shape whose Key is the address of the key in the device's memory, where it changes from step
// to step.
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
		Batch0: n(s.Batch0), Head0: n(s.Head0), Group0: n(s.Group0), HeadsAll: n(s.HeadsAll), GroupAll: n(s.GroupAll),
		SeqAll: n(s.SeqAll), KSeqAll: n(s.KSeqAll), KeyAddressed: is(keyed)}
	if s.Dropout > 0 {
		a.Key, a.Least, a.Keep = s.Key, rng.Least(s.Dropout), 1/(1-s.Dropout)
	}
	b, err := binary.Append(nil, binary.LittleEndian, &a)
	if err != nil {
		panic(err) // a struct of fixed size
	}
	return b
}

// A Step is a launch of a call of attention: a kernel's name without the type's suffix, and its geometry.
type Step struct {
	Kernel string
	Launch Launch
}

// tiles says how many queries or keys a block has: of the plain kernels, of those on tensor cores, and there of
// attention with heads of 64.
const (
	plainTile = 32
	mmaTile   = 64
	wideTile  = 128
)

// onTensorCores tells whether there are kernels on tensor cores for the shape.
func onTensorCores(s *cpu.AttentionShape, suffix string) bool {
	return slices.Contains(narrow, suffix) && s.Dim == s.VDim && slices.Contains([]int{64, 80, 96, 128}, s.Dim)
}

// Attention is the launch for a shape and numbers of a type, "bf16" say; its arguments are those of the table's
// attention. Numbers of 16 bits with the usual head dims go to tensor cores.
func Attention(s *cpu.AttentionShape, suffix string) Step {
	name, tile := "attention", plainTile
	if onTensorCores(s, suffix) {
		name, tile = fmt.Sprint(name, s.Dim), mmaTile
		if s.Dim == 64 {
			tile = wideTile
		}
	}
	return Step{name, attentionwise(s.Batch*s.Heads*s.Group*ceil(s.Seq, tile), s.VDim)}
}

// AttentionGrad are the three launches of the gradient, in order: do·o of each query into scratch of
// Batch·Seq·Heads·Group numbers, dq, dk and dv. Arguments are those of the table's attention_dot, attention_grad_q and
// attention_grad_kv.
func AttentionGrad(s *cpu.AttentionShape, suffix string) [3]Step {
	name, tile, across := "attention", plainTile, (ceil(s.Dim, 128)+ceil(s.VDim, 128))*128
	if onTensorCores(s, suffix) {
		name, tile, across = fmt.Sprint(name, s.Dim), mmaTile, 1
	}
	return [3]Step{
		{"attention_dot", rowwise(s.Batch*s.Seq*s.Heads*s.Group, s.VDim)},
		{name + "_grad_q", attentionwise(s.Batch*s.Heads*s.Group*ceil(s.Seq, tile), s.Dim)},
		{name + "_grad_kv", attentionwise(s.Batch*s.Heads*ceil(s.KSeq, tile), across)},
	}
}
