package engines

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// deepSeek is the shape of DeepSeek-V3's layers with experts.
var deepSeek = Transformer{Seq: 4096, Hidden: 7168, Heads: 128, KVHeads: 128, HeadDim: 192, FFN: 2048, Vocab: 129280,
	Experts: 256, Choices: 8, ExpertFFN: 2048, Groups: 8, BestGroups: 4,
	Gated: true, Rotary: true, KeysSeen: 2048, MLA: MLA{KVLatent: 512, QLatent: 1536, SharedKey: 64, ValueDim: 128}}

// HAI-LLM sends tokens to their experts in FP8 with scales, and what comes back in 16; gradients the other way
// round. Megatron sends all in 16. Both know that a token's experts are on 4 nodes at most.
func TestHAISendsFP8(t *testing.T) {
	split := Split{TP: 1, Micro: 1, EP: 64, Size: 2, Narrow: true}
	bytes := func(e *Engine, pass func(*Layer) *Function) (out []float64) {
		_, block, _ := e.Layers(&deepSeek, split, "none")
		for _, x := range pass(&block).Comms {
			if x.Op != ir.OpAllToAll || x.Once != (costmodel.Routing{Choices: 8, Groups: 8, BestGroups: 4}) {
				t.Errorf("%s: %+v", e.Name, x)
			}
			out = append(out, x.Bytes/(4096*8*7168))
		}
		return out
	}
	forward, backward := func(l *Layer) *Function { return &l.Forward }, func(l *Layer) *Function { return &l.Backward }
	if got := bytes(haiEngine, forward); len(got) != 2 || math.Abs(got[0]-1.03125) > 1e-9 || got[1] != 2 {
		t.Errorf("forward %v bytes an element", got)
	}
	if got := bytes(haiEngine, backward); len(got) != 2 || got[0] != 2 || math.Abs(got[1]-1.03125) > 1e-9 {
		t.Errorf("backward %v bytes an element", got)
	}
	if got := bytes(EngineOf("megatron"), forward); len(got) != 2 || got[0] != 2 || got[1] != 2 {
		t.Errorf("megatron %v bytes an element", got)
	}
}

// What HAI-LLM recomputes it does not save, and it works for it; a rank holds two stages' parameters.
func TestHAISaves(t *testing.T) {
	split := Split{TP: 1, Micro: 1, EP: 64, Size: 2, Narrow: true}
	plain := *haiEngine
	plain.RecomputesUp, plain.RecomputesNorms, plain.RecomputesActivation = false, false, false
	_, all, _ := plain.Layers(&deepSeek, split, "none")
	before := all.Saved
	for _, turn := range []func(){func() {
		plain.RecomputesUp = true
	}, func() {
		plain.RecomputesNorms = true
	}, func() {
		plain.RecomputesActivation = true
	}} {
		turn()
		_, less, _ := plain.Layers(&deepSeek, split, "none")
		if less.Saved > 0.95*before || len(less.Backward.Ops) <= len(all.Backward.Ops) {
			t.Errorf("%v bytes saved after %v, %d ops backward", less.Saved, before, len(less.Backward.Ops))
		}
		before, all = less.Saved, less
	}
	m := costmodel.Memory{Total: 7 << 30, Params: 1 << 30, Grads: 2 << 30, Optimizer: 4 << 30}
	if got := haiEngine.Holds(m, &ir.Plan{DP: 2, TP: 1, PP: 2}); got.Params != 2<<30 || got.Grads != 4<<30 ||
		got.Optimizer != 4<<30 {
		t.Errorf("with a pipeline it holds %+v", got)
	}
	if got := haiEngine.Holds(m, &ir.Plan{DP: 2, TP: 1, PP: 1}); got.Params != 1<<30 {
		t.Errorf("without a pipeline it holds %+v", got)
	}
}
