package cpu

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkAttentionOfDocuments reports the time of attention in which a window is packed with documents of equal
// lengths, as a part of its time without their mask. Both run in turns.
func BenchmarkAttentionOfDocuments(b *testing.B) {
	const seq = 2048
	for _, length := range []int{2048, 1024, 512, 128, 16} {
		plain := AttentionShape{Batch: 1, Seq: seq, KSeq: seq, Heads: 4, Group: 1, Dim: 64, VDim: 64, Scale: 0.125,
			Mask: causal, SeqAll: seq}
		lengths := make([]int, seq/length)
		for i := range lengths {
			lengths[i] = length
		}
		masked := withDocuments(plain, lengths...)
		x, k := drawTensors[float32](plain), Table[float32]()
		forward := func(s AttentionShape) { k.Attention(x.o, x.lse, x.q, x.k, x.v, s) }
		gradient := func(s AttentionShape) {
			k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s)
		}
		for name, run := range map[string]func(s AttentionShape){"forward": forward, "gradient": gradient} {
			b.Run(fmt.Sprintf("%d/%s", length, name), func(b *testing.B) {
				var spent [2]time.Duration
				for b.Loop() {
					for i, s := range []AttentionShape{plain, masked} {
						forward(s) // the gradient needs its result
						start := time.Now()
						run(s)
						spent[i] += time.Since(start)
					}
				}
				b.ReportMetric(float64(spent[1])/float64(spent[0]), "masked/unmasked")
			})
		}
	}
}

// BenchmarkAttentionOf runs Attention with the shapes of bench/step's models, one layer after the other.
func BenchmarkAttentionOf(b *testing.B) {
	for _, c := range []struct {
		name string
		s    AttentionShape
	}{
		{"nano", AttentionShape{Batch: 12, Seq: 64, KSeq: 64, Heads: 4, Group: 1, Dim: 32, VDim: 32,
			Scale: 0.17677669529663687, Mask: causal}},
		{"gpt2", AttentionShape{Batch: 4, Seq: 64, KSeq: 64, Heads: 12, Group: 1, Dim: 64, VDim: 64, Scale: 0.125,
			Mask: causal}},
		{"mid", AttentionShape{Batch: 8, Seq: 256, KSeq: 256, Heads: 6, Group: 1, Dim: 64, VDim: 64, Scale: 0.125,
			Mask: causal}},
		{"llama", AttentionShape{Batch: 4, Seq: 512, KSeq: 512, Heads: 2, Group: 3, Dim: 64, VDim: 64, Scale: 0.125,
			Mask: causal}},
	} {
		var sets [8]tensors[float32] // as many layers
		for i := range sets {
			sets[i] = drawTensors[float32](c.s)
		}
		var narrow [len(sets)]narrowTensors
		for i := range narrow {
			narrow[i] = drawNarrow(c.s)
			narrow[i].forward(c.s)
		}
		k, i := Table[float32](), 0
		b.Run(c.name+"/forward", func(b *testing.B) {
			for b.Loop() {
				x := &sets[i%len(sets)]
				i++
				k.Attention(x.o, x.lse, x.q, x.k, x.v, c.s)
			}
		})
		b.Run(c.name+"/gradient", func(b *testing.B) {
			for i := range sets {
				x := &sets[i]
				k.Attention(x.o, x.lse, x.q, x.k, x.v, c.s)
			}
			for b.Loop() {
				x := &sets[i%len(sets)]
				i++
				k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, c.s)
			}
		})
		b.Run(c.name+"/forward, bf16", func(b *testing.B) {
			for b.Loop() {
				x := &narrow[i%len(narrow)]
				i++
				k.AttentionBF16(x.out, x.lse, x.q, x.k, x.v, x.wide, c.s)
			}
		})
		b.Run(c.name+"/gradient, bf16", func(b *testing.B) {
			for b.Loop() {
				x := &narrow[i%len(narrow)]
				i++
				x.backward(c.s)
			}
		})
	}
}
