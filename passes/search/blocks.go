package search

import (
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// blocks are what layers need and cost at one micro-batch, found once: plans are put together from these numbers alone.
type blocks struct {
	base   *base
	micro  int
	stream int // bytes of a block's input
	logits int
	wide   int         // a CPU rank's scratch
	layers []blockNeed // of each segment of the model
}

// blockNeed is what a layer of a segment needs, in bytes, as it is and where it is recomputed.
type blockNeed struct {
	whole, remat         int // what it keeps for backward, its input included
	rematSaved, grouped  int // without its input; with it, in a group that is run again
	work, rematWork      int // temporaries
	block, input, output bool
}

// line is a number of bytes that grows with the micro-batch.
type line struct{ one, more int }

func (l line) at(micro int) int { return l.one + (micro-1)*l.more }

// tempLine is a temporary whose size is a line.
type tempLine struct {
	passes.Temp
	more int
}

// variantLines are the values of a variant of a segment that take memory.
type variantLines struct {
	slots []line
	temps [][]tempLine // of each function
	// of each node: what it widens of 16-bit values, see [ir.Program.Scratch]; of what recomputes nothing
	wides    []line
	gradient bool // the second part of backward reads the gradient of its output
}

// measure notes all sizes of some variants of a program of micro-batch 1; again at micro-batch 2 it makes them lines.
func measure(p *ir.Program, variants []*ir.Segment, before []variantLines) []variantLines {
	var out []variantLines
	for i, seg := range variants {
		v := variantLines{gradient: p.KeepsGradient(seg.Name)}
		if slices.Contains(p.Model.Segments, seg) {
			v.wides = wides(p, seg)
		}
		if before != nil {
			for j := range v.wides {
				v.wides[j] = line{before[i].wides[j].one, v.wides[j].one - before[i].wides[j].one}
			}
		}
		for j, x := range append(slotValues(seg.Forward, seg.Forward.Inputs), slotValues(seg.Backward, nil)...) {
			l := line{one: x.Type.LocalBytes(p.Mesh)}
			if before != nil {
				l = line{before[i].slots[j].one, l.one - before[i].slots[j].one}
			}
			v.slots = append(v.slots, l)
		}
		for j, f := range seg.Funcs() {
			var ts []tempLine
			for k, t := range passes.Temps(p, f) {
				l := tempLine{Temp: t}
				if before != nil {
					l = before[i].temps[j][k]
					l.more = t.Bytes - l.Bytes
				}
				ts = append(ts, l)
			}
			v.temps = append(v.temps, ts)
		}
		out = append(out, v)
	}
	return out
}

// wides are what the nodes of a segment widen.
func wides(p *ir.Program, seg *ir.Segment) (out []line) {
	for _, f := range seg.Funcs() {
		for _, n := range f.Nodes {
			sum := 0
			for _, v := range n.Widened() {
				sum += v.Type.LocalElems(p.Mesh) * ir.F32.Size()
			}
			out = append(out, line{one: sum})
		}
	}
	return out
}

// at is what the base's layers need at a micro-batch.
func (b *base) at(micro int) *blocks {
	if t := b.byMicro[micro]; t != nil {
		return t
	}
	t := &blocks{base: b, micro: micro, stream: roundUp(b.stream * micro), logits: b.logits * micro}
	b.byMicro[micro] = t
	for i := range b.lines {
		for _, l := range b.lines[i].wides {
			t.wide = max(t.wide, roundUp(l.at(micro)))
		}
	}
	at := 0
	need := func(seg *ir.Segment) (saved, work int) {
		v := &b.lines[at]
		at++
		for _, l := range v.slots {
			saved += roundUp(l.at(micro))
		}
		if v.gradient {
			saved += t.stream
		}
		return saved, v.workspace(micro)
	}
	for _, seg := range b.prog.Model.Segments {
		l := blockNeed{input: seg.Forward.Value(passes.StreamName) != nil, output: len(seg.Forward.Outputs) > 0}
		l.block = l.input && l.output
		l.whole, l.work = need(seg)
		l.grouped = l.whole
		if b.lines[at-1].gradient { // both parts of a group's backward run at once
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

// workspace is what a variant's functions need for temporaries at a micro-batch.
func (v *variantLines) workspace(micro int) int {
	most := 0
	for _, ls := range v.temps {
		temps := make([]passes.Temp, len(ls))
		for i, l := range ls {
			temps[i] = l.Temp
			temps[i].Bytes += (micro - 1) * l.more
		}
		most = max(most, passes.Workspace(temps))
	}
	return most
}
