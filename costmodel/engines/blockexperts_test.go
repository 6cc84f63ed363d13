package engines

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// However experts are shared out, ranks of a tp group do together what a token's choices ask for; only tokens that go
// to other ranks are sent, and only experts that are cut gather theirs.
func TestExpertsOfABlock(t *testing.T) {
	s := Transformer{Seq: 512, Hidden: 1024, Heads: 16, KVHeads: 4, HeadDim: 64, Experts: 16, Choices: 2,
		ExpertFFN: 768, Gated: true, Rotary: true, KeysSeen: 256}
	e := EngineOf("megatron")
	routed := func(f *Function) (flops float64) {
		for _, o := range f.Ops {
			if o.Kind == costmodel.Matrix && o.Shape.Batch > 1 {
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
	for _, p := range []Split{{TP: 1, EP: 1, ETP: 1}, {TP: 1, EP: 8, ETP: 1}, {TP: 4, SP: true, EP: 2, ETP: 1},
		{TP: 4, SP: true, EP: 8, ETP: 1}, {TP: 4, SP: true, EP: 4, ETP: 2}, {TP: 2, EP: 1, ETP: 2}} {
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
		gathered, scattered := sum(&block.Forward, ir.OpAllGather, "etp"), sum(&block.Forward,
			ir.OpReduceScatter, "etp")
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

// The host issues a kernel for each expert that a rank has, graphs take launches off it and leave the work as it is,
// and fused experts have neither casts nor activations of their own.
func TestKernelsOfExperts(t *testing.T) {
	s := Transformer{Seq: 512, Hidden: 1024, Heads: 16, KVHeads: 4, HeadDim: 64, Experts: 16, Choices: 2,
		ExpertFFN: 768, Gated: true, Rotary: true, KeysSeen: 256}
	count := func(ep int, scaled bool, change func(*Engine)) (issued, bytes float64) {
		e := *EngineOf("megatron")
		change(&e)
		_, block, _ := e.Layers(&s, Split{TP: 1, EP: ep, ETP: 1, Micro: 1, Size: 2, Narrow: true,
			Scaled: scaled}, "none")
		for _, f := range []*Function{&block.Forward, &block.Backward, &block.Weights} {
			for i := range f.Ops {
				issued += f.Ops[i].Issued()
				bytes += f.Ops[i].Bytes
			}
		}
		return issued, bytes
	}
	plain := func(*Engine) {}
	fp8Bytes, _ := count(2, false, plain)
	two, _ := count(8, false, plain)
	loop := EngineOf("megatron").Looped
	if got, want := fp8Bytes-two, 6*6*loop; math.Abs(got-want) > 1e-9 { // two GEMMs and their two gradients
		t.Errorf("six experts more are %v kernels more, want %v", got, want)
	}
	casts, _ := count(2, true, plain)
	// a cast before each GEMM and before its gradients
	if got, want := casts-fp8Bytes, 4*7*loop; math.Abs(got-want) > 1e-9 {
		t.Errorf("scales of eight experts' blocks are %v kernels more, want %v", got, want)
	}
	before, work := count(2, true, plain)
	for _, g := range []Graphed{GraphedRouter, GraphedDense, GraphedStep} {
		issued, bytes := count(2, true, func(e *Engine) { e.Graphed = g })
		if issued >= before || bytes != work {
			t.Errorf("graphs %d: %v kernels after %v, %g bytes after %g", g, issued, before, bytes, work)
		}
		before = issued
	}
	if before != 0 {
		t.Errorf("with graphs of the step the host issues %v kernels", before)
	}
	if issued, bytes := count(2, true, func(e *Engine) {
		e.FusedExperts = true
	}); issued >= casts-8*8*loop || bytes >= work {
		t.Errorf("fused experts: %v kernels of %v, %g bytes of %g", issued, casts, bytes, work)
	}
}

// Each expert's GEMMs are kernels of their own. The first costs the host what an op does, those after it in the loop
// a part of that; on the device each is a launch.
func TestLoopedKernels(t *testing.T) {
	o := costmodel.Op{Kernel: 16, Looped: 0.5}
	if got := o.Issued(); got != 1+15*0.5 {
		t.Errorf("16 kernels of a loop take the host as long as %v", got)
	}
	o.Held = true
	if got := o.Issued(); got != 0 {
		t.Errorf("in a graph as long as %v", got)
	}
	e := *EngineOf("megatron")
	s := &Transformer{Seq: 4096, Hidden: 2048, Heads: 16, KVHeads: 16, HeadDim: 128, Experts: 64, Choices: 6,
		ExpertFFN: 1408, Gated: true, KeysSeen: 2048}
	issued := func(looped float64) (sum, kernels float64) {
		e.Looped = looped
		_, block, _ := e.Layers(s, Split{TP: 1, EP: 4, Micro: 1, Size: 2, Narrow: true, Scaled: true}, "none")
		for i := range block.Forward.Ops {
			sum += block.Forward.Ops[i].Issued()
			kernels += block.Forward.Ops[i].Kernel
		}
		return sum, kernels
	}
	all, kernels := issued(1)
	half, same := issued(0.5)
	if want := 4 * 15 * 0.5; all-half != want || kernels != same { // two GEMMs, two casts
		t.Errorf("a loop that costs half saves %v kernels' worth, want %v; %v and %v kernels", all-half, want,
			kernels, same)
	}
}
