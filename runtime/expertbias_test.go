package runtime

import (
	"math"
	"slices"
	"testing"
)

// biased is a rank whose bucket has a parameter of four experts behind one that moves by its gradient. A step is of 12 tokens
// that go to two experts each: six choices an expert.
func biased(master bool) *Rank {
	bias := &Param{Name: "bias", Dims: []Dim{{Name: "candidate", Size: 4}}, Choices: 2}
	p := &Program{Batch: BatchLayout{GlobalBatch: 4, SeqLen: 3}, Optim: SGD}
	stage := &Stage{Buckets: []Bucket{{Elems: 16}}, Arena: Arena{Params: Region{0, 64}, Grads: Region{64, 64}, Master: Region{128, 64}}}
	if p.Types = (Types{F32, F32, F32, F32, F32, F32}); master {
		p.Types.Params, p.Types.Master = BF16, F32
	}
	r := &Rank{Program: p, Stage: stage, Arena: make([]byte, 192), Clip: 0.5, Scale: 8}
	r.Hyper = Hyper{LR: 1, BiasRate: 0.25}
	r.buckets = []bucket{{hi: 16, counts: true, spans: []span{{lo: 0, hi: 2}, {lo: 2, hi: 6, load: bias}, {lo: 6, hi: 7}}}}
	copy(View[float32](r, 64, 16), []float32{2, 2, 6, 9, 0, 5, 4})
	return r
}

// Experts with less than their share of the choices move up, those with more down, the others stay; clipping and the loss
// scale are of gradients, and so is the norm.
func TestExpertBias(t *testing.T) {
	for _, master := range []bool{false, true} {
		r := biased(master)
		Optimize[float32](r, 0)
		want := []float32{-1, -1, 0, -0.25, 0.25, 0.25, -2}
		got := make([]float32, len(want))
		if read(r, r.Program.types().Params, 0, got); !slices.Equal(got, want) {
			t.Errorf("master %v: parameters are %v, want %v", master, got, want)
		}
		if read(r, F32, 128, got); master && !slices.Equal(got, want) {
			t.Errorf("the master copy is %v, want %v", got, want)
		}
		if ClipGradients[float32](r, -1); r.Norm != math.Sqrt(4+4+16)/8 {
			t.Errorf("the norm is %v, want that of 2, 2 and 4 over 8", r.Norm)
		}
		if r.Skip = true; r.Skip {
			Optimize[float32](r, 0)
		}
		if read(r, r.Program.types().Params, 0, got); !slices.Equal(got, want) {
			t.Errorf("master %v: a step that is skipped moves to %v", master, got)
		}
	}
}
