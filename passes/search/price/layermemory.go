package price

import (
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// blocks is the memory of each kind of layer at one micro-batch, computed once. Plans are composed from these numbers
// alone.
type blocks struct {
	base        *baseProfile
	micro       int
	stream      int // bytes of a block's input
	logits      int
	castScratch int           // bytes of a CPU rank's scratch
	attention   int           // bytes of a library's workspace for attention
	fp8         int           // bytes of FP8 copies of a matmul's operands
	layers      []layerMemory // by the segment of the model
}

// layerMemory is the memory of a layer in bytes, as it is and recomputed.
type layerMemory struct {
	whole, remat int // saved for the backward pass, input included
	// rematSaved: without its input; grouped: with its input, in a group that is recomputed
	rematSaved, grouped  int
	work, rematWork      int // temporaries
	block, input, output bool
}

// linearBytes is a number of bytes that is linear in the micro-batch.
type linearBytes struct{ atOne, slope int }

func (l linearBytes) at(micro int) int { return l.atOne + (micro-1)*l.slope }

// linearTemp is a temporary whose size is linear in the micro-batch.
type linearTemp struct {
	passes.Temp
	slope int
}

// variantSizes is the sizes of the values of a segment's variant.
type variantSizes struct {
	slots []linearBytes
	temps [][]linearTemp // of each function
	// of each node: the 16-bit values that it widens, see [ir.Program.Scratch]; only of variants without
	// recomputation
	castSizes []linearBytes
	// the second part of the backward pass reads the gradient of its output
	keepsGradient bool
}

// measureSizes records all sizes of some variants of a program at micro-batch 1. Called again at micro-batch 2, it
// makes them linear functions.
func measureSizes(p *ir.Program, variants []*ir.Segment, before []variantSizes) []variantSizes {
	var out []variantSizes
	for i, seg := range variants {
		v := variantSizes{keepsGradient: p.KeepsGradient(seg.Name)}
		if slices.Contains(p.Model.Segments, seg) {
			v.castSizes = castSizes(p, seg)
		}
		if before != nil {
			for j := range v.castSizes {
				v.castSizes[j] = linearBytes{before[i].castSizes[j].atOne,
					v.castSizes[j].atOne - before[i].castSizes[j].atOne}
			}
		}
		for j, x := range append(savedValues(seg.Forward, seg.Forward.Inputs), savedValues(seg.Backward, nil)...) {
			l := linearBytes{atOne: x.Type.LocalBytes(p.Mesh)}
			if before != nil {
				l = linearBytes{before[i].slots[j].atOne, l.atOne - before[i].slots[j].atOne}
			}
			v.slots = append(v.slots, l)
		}
		for j, f := range seg.Funcs() {
			var ts []linearTemp
			for k, t := range passes.Temps(p, f) {
				l := linearTemp{Temp: t}
				if before != nil {
					l = before[i].temps[j][k]
					l.slope = t.Bytes - l.Bytes
				}
				ts = append(ts, l)
			}
			v.temps = append(v.temps, ts)
		}
		out = append(out, v)
	}
	return out
}

// castSizes returns the bytes that each node of a segment widens.
func castSizes(p *ir.Program, seg *ir.Segment) (out []linearBytes) {
	for _, f := range seg.Funcs() {
		for _, n := range f.Nodes {
			sum := 0
			for _, v := range n.Widened() {
				sum += v.Type.LocalElems(p.Mesh) * ir.F32.Size()
			}
			out = append(out, linearBytes{atOne: sum})
		}
	}
	return out
}

// atMicroBatch returns the memory of the base's layers at a micro-batch.
func (b *baseProfile) atMicroBatch(micro int) *blocks {
	if t := b.byMicro[micro]; t != nil {
		return t
	}
	t := &blocks{base: b, micro: micro, stream: roundUp(b.stream * micro), logits: b.logits * micro}
	t.attention, t.fp8 = b.attentionWorkspace(micro), b.fp8Copies(micro)
	b.byMicro[micro] = t
	for i := range b.sizes {
		for _, l := range b.sizes[i].castSizes {
			t.castScratch = max(t.castScratch, roundUp(l.at(micro)))
		}
	}
	at := 0
	need := func(seg *ir.Segment) (saved, work int) {
		v := &b.sizes[at]
		at++
		for _, l := range v.slots {
			saved += roundUp(l.at(micro))
		}
		if v.keepsGradient {
			saved += t.stream
		}
		return saved, v.workspace(micro)
	}
	for _, seg := range b.prog.Model.Segments {
		l := layerMemory{input: seg.Forward.Value(passes.StreamName) != nil, output: len(seg.Forward.Outputs) > 0}
		l.block = l.input && l.output
		l.whole, l.work = need(seg)
		l.grouped = l.whole
		if b.sizes[at-1].keepsGradient { // both parts of a group's backward pass run together
			l.grouped -= t.stream
		}
		if seg.Remat != nil {
			l.rematSaved, l.rematWork = need(seg.Remat)
			l.remat = l.rematSaved
		}
		if l.input {
			l.whole, l.remat, l.grouped = l.whole+t.stream, l.remat+t.stream, l.grouped+t.stream
		}
		t.layers = append(t.layers, l)
	}
	return t
}

// workspace returns the bytes of temporaries that a variant's functions need at a micro-batch.
func (v *variantSizes) workspace(micro int) int {
	largest := 0
	for _, ls := range v.temps {
		temps := make([]passes.Temp, len(ls))
		for i, l := range ls {
			temps[i] = l.Temp
			temps[i].Bytes += (micro - 1) * l.slope
		}
		largest = max(largest, passes.Workspace(temps))
	}
	return largest
}
