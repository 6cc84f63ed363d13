package engines

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// latentBlock is a block of MLA whose widths tell its streams apart.
func latentBlock(e *Engine, tp, queries int, sp bool, recompute string) Layer {
	s := Transformer{Seq: 512, Hidden: 1024, Heads: 8, KVHeads: 8, HeadDim: 96, FFN: 2048, Vocab: 4096, Gated: true,
		Rotary: true, KeysSeen: 256.5,
		MLA: MLA{KVLatent: 128, QLatent: queries, SharedKey: 32, ValueDim: 64}}
	_, block, _ := e.Layers(&s, Split{TP: tp, SP: sp, Micro: 1, Size: 2}, recompute)
	return block
}

// Gradients of the narrow streams are summed over the ranks of tp: by what scatters them where sp splits tokens, else
// whole.
func TestGradientsOfLatents(t *testing.T) {
	for _, queries := range []int{0, 256} {
		bytes := 2 * 512 * float64(queries+128+32)
		for _, c := range []struct {
			tp   int
			sp   bool
			want []ir.Op
		}{{1, false, nil}, {4, false, []ir.Op{ir.OpAllReduce}}, {4, true, []ir.Op{ir.OpReduceScatter}}} {
			block := latentBlock(EngineOf("megatron"), c.tp, queries, c.sp, "none")
			var got []ir.Op
			for _, x := range block.Backward.Comms {
				if x.Bytes == bytes {
					got = append(got, x.Op)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("queries of %d, tp %d, sp %v: gradients of %v bytes go by %v, want %v", queries, c.tp, c.sp,
					bytes, got, c.want)
			}
		}
	}
}

// Where whole blocks are recomputed, what widens the narrow streams is recomputed with them, and not twice.
func TestFullLeavesNothingToWiden(t *testing.T) {
	plain := *EngineOf("megatron")
	plain.RecomputesUp = false
	recomputed := plain
	recomputed.RecomputesUp = true
	for kind, more := range map[string]int{"none": 2, "full": 0} {
		a, b := latentBlock(&plain, 2, 256, true, kind), latentBlock(&recomputed, 2, 256, true, kind)
		if got := len(b.Backward.Ops) - len(a.Backward.Ops); got != more || kind == "full" && a.Work != b.Work {
			t.Errorf("recompute %s: %d ops more, want %d; temporaries of %v bytes and %v", kind, got, more,
				a.Work, b.Work)
		}
	}
}
