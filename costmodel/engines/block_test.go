package engines

import (
	"reflect"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// What matmuls in FP8 take is cast before it is gathered; what they give is summed in 16 bits.
func TestNarrowGathers(t *testing.T) {
	s := &Transformer{Seq: 512, Hidden: 1024, Heads: 8, KVHeads: 8, HeadDim: 128, FFN: 4096, Vocab: 32000,
		KeysSeen: 256}
	sums := func(narrow bool) map[ir.Op]float64 {
		_, block, _ := EngineOf("megatron").Layers(s, Split{TP: 4, Micro: 2, SP: true, Size: 2, Narrow: narrow}, "none")
		out := map[ir.Op]float64{}
		for _, f := range []*Function{&block.Forward, &block.Backward} {
			for _, c := range f.Comms {
				out[c.Op] += c.Bytes
			}
		}
		return out
	}
	wide, narrow := sums(false), sums(true)
	const stream = 2 * 512 * 1024 * 2 // bytes of the residual stream
	if wide[ir.OpAllGather] != 6*stream || narrow[ir.OpAllGather] != 3*stream {
		t.Errorf("gathered: %v bytes in 16 bits, %v in 8, of a stream of %v", wide[ir.OpAllGather],
			narrow[ir.OpAllGather], stream)
	}
	if wide[ir.OpReduceScatter] != 4*stream || narrow[ir.OpReduceScatter] != 4*stream {
		t.Errorf("scattered: %v bytes in 16 bits, %v in 8", wide[ir.OpReduceScatter], narrow[ir.OpReduceScatter])
	}
}

// Megatron's vocabulary is padded on each rank of tp, so that no GEMM with it has an odd size; FSDP's is what the
// model says.
func TestPaddedVocabulary(t *testing.T) {
	for _, c := range []struct {
		engine    string
		vocab, tp int
		columns   float64
	}{{"megatron", 50257, 1, 50304}, {"deepspeed", 50257, 4, 12672}, {"megatron", 51200, 8, 6400},
		{"fsdp", 50257, 1, 50257}} {
		s := &Transformer{Seq: 512, Hidden: 1024, Heads: 8, KVHeads: 8, HeadDim: 128, FFN: 4096, Vocab: c.vocab,
			KeysSeen: 256}
		_, _, head := EngineOf(c.engine).Layers(s, Split{TP: c.tp, Micro: 1, Size: 2}, "none")
		columns := 0.0
		for i := range head.Forward.Ops {
			if o := &head.Forward.Ops[i]; o.Kind == costmodel.Matrix {
				columns = o.Shape.N
			}
		}
		if columns != c.columns {
			t.Errorf("%s: a vocabulary of %d over tp %d has %v columns a rank, want %v", c.engine, c.vocab, c.tp,
				columns, c.columns)
		}
	}
}

// The classifier's operands are neither cast nor gathered in FP8, whatever the blocks' are.
func TestHeadIsNotNarrow(t *testing.T) {
	s := &Transformer{Seq: 512, Hidden: 1024, Heads: 8, KVHeads: 8, HeadDim: 128, FFN: 4096, Vocab: 32000,
		KeysSeen: 256}
	split := Split{TP: 4, Micro: 2, SP: true, Size: 2}
	_, _, want := EngineOf("megatron").Layers(s, split, "none")
	split.Narrow = true
	_, _, got := EngineOf("megatron").Layers(s, split, "none")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("with blocks in 8 bits %+v, in 16 %+v", got, want)
	}
}

// Gradients of weights are read and written where they are summed, each as large as the engine keeps it.
func TestSumsOfGradients(t *testing.T) {
	s := &Transformer{Seq: 512, Hidden: 1024, Heads: 8, KVHeads: 8, HeadDim: 128, FFN: 0, Vocab: 32000, KeysSeen: 256,
		Experts: 8, Choices: 2, ExpertFFN: 512}
	const weights = 4*1024*1024 + 8*1024 + 8*2*512*1024 // of attention, the router and the experts
	for _, separate := range []bool{false, true} {
		e := *EngineOf("megatron")
		e.SeparateSums = separate
		traffic := func(sums int) (bytes float64) {
			_, block, _ := e.Layers(s, Split{TP: 1, Micro: 1, Size: 2, Sums: sums}, "none")
			for i := range block.Weights.Ops {
				bytes += float64(block.Weights.Ops[i].Bytes)
			}
			return bytes
		}
		if got := traffic(4) - traffic(2); got != 4*weights || traffic(0) != traffic(4) {
			t.Errorf("separate %v: sums in f32 move %v bytes more than in fp16, want %v; %v by default, of %v",
				separate, got, 4*weights, traffic(0), traffic(4))
		}
	}
	for _, c := range []struct {
		engine string
		params ir.Elem
		want   int
	}{{"megatron", ir.BF16, 4}, {"megatron", ir.F16, 2}, {"deepspeed", ir.BF16, 4}, {"deepspeed", ir.F16, 2},
		{"fsdp", ir.BF16, 2}, {"fsdp", ir.F32, 4}} {
		e := EngineOf(c.engine)
		p := bf16Preset
		p.Compute, p.Params = c.params, c.params
		if got := e.Sums(e.State(p)); got != c.want {
			t.Errorf("%s sums %v in %d bytes, want %d", c.engine, c.params, got, c.want)
		}
	}
}
