package rank

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// biased is a rank whose bucket has a parameter of four experts behind one that moves by its gradient. A step is of 12
// tokens that go to two experts each: six choices an expert.
func biased(master bool) *Rank {
	bias := &program.Param{Name: "bias", Dims: []program.Dim{{Name: "candidate", Size: 4}}, Choices: 2}
	p := &Program{ProgramData: ProgramData{Batch: program.BatchLayout{GlobalBatch: 4, SeqLen: 3},
		Optim: program.SGD},
	}
	stage := &program.Stage{Buckets: []program.Bucket{{Elems: 16}},
		Arena: program.Arena{Params: program.Region{Offset: 0, Size: 64}, Grads: program.Region{Offset: 64, Size: 64},
			Master: program.Region{Offset: 128, Size: 64}}}
	p.Types = (program.Types{Compute: program.F32, Params: program.F32, Grads: program.F32, Reduce: program.F32,
		Master: program.F32, Moments: program.F32})
	if master {
		p.Types.Params, p.Types.Master = program.BF16, program.F32
	}
	r := &Rank{Program: p, tracks: tracks{compute: &timeline.Track{}}, Pass: Pass{Scale: 8},
		Outcome: Outcome{Clip: 0.5},
		Store:   tensors.Store{Data: &p.ProgramData, Stage: stage, Arena: make([]byte, 192)}}
	r.Hyper = Hyper{LR: 1, BiasRate: 0.25}
	r.Shards = []tensors.Shard{{Hi: 16}}
	spans := []tensors.Span{{Lo: 0, Hi: 2, Rate: 1}, {Lo: 2, Hi: 6, Load: bias}, {Lo: 6, Hi: 7, Rate: 0.25}}
	r.buckets = []bucket{{Shard: &r.Shards[0], countsInNorm: true, spans: spans}}
	copy(tensors.View[float32](&r.Store, 64, 16), []float32{2, 2, 6, 9, 0, 5, 4})
	return r
}

// Experts with less than their share of the choices move up, those with more down, the others stay; clipping and the
// loss scale are of gradients, and so is the norm. The last span's learning rate is multiplied by 0.25.
func TestExpertBias(t *testing.T) {
	for _, master := range []bool{false, true} {
		r := biased(master)
		Optimize[float32](r, 0)
		want := []float32{-1, -1, 0, -0.25, 0.25, 0.25, -0.5}
		got := make([]float32, len(want))
		tensors.Read(&r.Store, r.Program.TensorTypes().Params, 0, got)
		if !slices.Equal(got, want) {
			t.Errorf("master %v: parameters are %v, want %v", master, got, want)
		}
		tensors.Read(&r.Store, program.F32, 128, got)
		if master && !slices.Equal(got, want) {
			t.Errorf("the master copy is %v, want %v", got, want)
		}
		ClipGradients[float32](r, -1)
		if r.Norm != math.Sqrt(4+4+16)/8 {
			t.Errorf("the norm is %v, want that of 2, 2 and 4 over 8", r.Norm)
		}
		r.Skip = true
		Optimize[float32](r, 0)
		tensors.Read(&r.Store, r.Program.TensorTypes().Params, 0, got)
		if !slices.Equal(got, want) {
			t.Errorf("master %v: a step that is skipped moves to %v", master, got)
		}
	}
}

// The biases of all layers are one run, which may be longer than a block of numbers.
func TestBiasesOfManyLayers(t *testing.T) {
	const n = tensors.BlockElems + 4
	r := biased(false)
	r.Stage.Arena = program.Arena{Params: program.Region{Offset: 0, Size: 4 * n}, Grads: program.Region{Offset: 4 * n,
		Size: 4 * n}}
	r.Arena, r.Stage.Buckets = make([]byte, 8*n), []program.Bucket{{Elems: n}}
	r.Shards = []tensors.Shard{{Hi: n}}
	r.buckets = []bucket{{Shard: &r.Shards[0], spans: []tensors.Span{{Lo: 0, Hi: n,
		Load: &program.Param{Dims: []program.Dim{{Size: 4}}, Choices: 2}}}}}
	copy(tensors.View[float32](&r.Store, 4*n+4*tensors.BlockElems, 4), []float32{6, 9, 0, 5})
	Optimize[float32](r, 0)
	got := tensors.View[float32](&r.Store, 0, n)
	if want := []float32{0.25, 0, -0.25, 0.25, 0.25}; !slices.Equal(got[tensors.BlockElems-1:], want) {
		t.Errorf("the last are %v, want %v", got[tensors.BlockElems-1:], want)
	}
}

// A run whose expert bias moves says so, because transformers' does not.
func TestExpertBiasNote(t *testing.T) {
	p := &Program{ProgramData: ProgramData{Params: []program.Param{{Name: "w"}, {Name: "bias", Choices: 2}}}}
	const want = "expert bias: each step moves it by 0.001 against the expert's load (train.experts.bias_rate); " +
		"transformers keeps it fixed; use --set train.experts.bias_rate=0 for that"
	if got := p.ExpertBiasNote(0.001); got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
	if got := p.ExpertBiasNote(0); got != "" {
		t.Errorf("a bias that stays is noted: %q", got)
	}
	p.Params = p.Params[:1]
	if p.ExpertBiasNote(0.001) != "" {
		t.Error("a model without a bias has a note")
	}
}
