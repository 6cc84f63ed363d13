package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// However experts are shared out, ranks of a tp group do together what a token's choices ask for; only tokens that go to
// other ranks are sent, and only experts that are cut gather theirs.
func TestExpertsOfABlock(t *testing.T) {
	s := Transformer{Seq: 512, Hidden: 1024, Heads: 16, KVHeads: 4, HeadDim: 64, Experts: 16, Choices: 2, ExpertFFN: 768, Gated: true, Rotary: true, KeysSeen: 256}
	e := EngineOf("megatron")
	routed := func(f *Function) (flops float64) {
		for _, o := range f.Ops {
			if o.Kind == Matrix && o.Shape.Batch > 1 {
				flops += o.Flops
			}
		}
		return flops
	}
	sum := func(f *Function, op ir.Op, axis ir.Axis) (bytes float64) {
		for _, c := range f.Comms {
			if c.Op == op && c.Axis == axis {
				bytes += c.Bytes
			}
		}
		return bytes
	}
	const micro = 2
	tokens := float64(micro * s.Seq)
	want := 2 * 3 * tokens * float64(s.Choices*s.Hidden*s.ExpertFFN)
	for _, p := range []Split{{TP: 1, EP: 1, ETP: 1}, {TP: 1, EP: 8, ETP: 1}, {TP: 4, SP: true, EP: 2, ETP: 1}, {TP: 4, SP: true, EP: 8, ETP: 1}, {TP: 4, SP: true, EP: 4, ETP: 2}, {TP: 2, EP: 1, ETP: 2}} {
		p.Micro, p.Size = micro, 2
		_, block, _ := e.Layers(&s, p, "none")
		for i, f := range []*Function{&block.Forward, &block.Backward, &block.Weights} {
			if got := routed(f) * float64(p.TP); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%+v: function %d of tp ranks does %g flops in experts, want %g", p, i, got, want)
			}
			if a2a := sum(f, ir.OpAllToAll, "ep"); (a2a > 0) != (p.EP > 1 && i < 2) {
				t.Errorf("%+v: function %d sends %g bytes to experts", p, i, a2a)
			}
		}
		gathered, scattered := sum(&block.Forward, ir.OpAllGather, "etp"), sum(&block.Forward, ir.OpReduceScatter, "etp")
		if (gathered > 0) != (p.ETP > 1 && p.SP) || gathered != scattered {
			t.Errorf("%+v: over etp %g bytes gathered, %g scattered", p, gathered, scattered)
		}
		if summed := sum(&block.Forward, ir.OpAllReduce, "etp"); (summed > 0) != (p.ETP > 1 && !p.SP) {
			t.Errorf("%+v: %g bytes summed over etp", p, summed)
		}
		if a2a := sum(&block.Forward, ir.OpAllToAll, "ep"); p.EP > 1 && p.SP == (p.TP > 1) {
			if want := 2 * 2 * tokens / float64(p.TP) * float64(s.Choices*s.Hidden); a2a != want {
				t.Errorf("%+v: %g bytes to experts and back, want %g", p, a2a, want)
			}
		}
	}
	dense := s
	dense.Experts, dense.FFN = 0, s.ExpertFFN*s.Choices
	p := Split{TP: 1, Micro: micro, Size: 2}
	_, block, _ := e.Layers(&s, p, "none")
	_, plain, _ := e.Layers(&dense, p, "none")
	if block.Saved <= plain.Saved {
		t.Errorf("a block with experts keeps %g bytes, a dense one as wide as the choices %g", block.Saved, plain.Saved)
	}
}
