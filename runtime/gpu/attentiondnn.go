//go:build cuda && linux

package gpu

import (
	"errors"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
)

// attentionRoom is how many bytes of workspace cuDNN's attention may take. Its deterministic gradient keeps the gradient of the scores of all heads there, in 16 bits: where those of all
// sequences do not fit, it is called for some at a time, and not at all if one's do not.
const attentionRoom = 256 << 20

// fused is attention by cuDNN: what is ready, and the workspace, of which there is one, since all runs on the compute stream.
type fused struct {
	of    *cuda.Attentions // nil: there is no cuDNN, or it is not wanted
	ways  map[fusedKind]*cuda.AttentionPlan
	calls map[fusedKind]int // on how many parts of the batch each way is called
	room  cuda.Memory
}

// fusedKind is a kind of attention, or of its gradient.
type fusedKind struct {
	cuda.Attention
	grad bool
}

// openFused makes ready what the program will want of cuDNN, as far as cuDNN takes it. What it does not take, or fails to, is computed by kernels of our own.
func (d *device) openFused(dnn *cuda.DNN) (err error) {
	kinds := d.rank.Program.Attends
	if dnn == nil || len(kinds) == 0 || ours("attention") {
		return nil
	}
	f := &d.fused
	if f.of, err = dnn.NewAttentions(); err != nil {
		f.of = nil
		return nil
	}
	d.atClose(func() error { return f.close() })
	f.ways, f.calls = map[fusedKind]*cuda.AttentionPlan{}, map[fusedKind]int{}
	most := int64(0)
	for _, a := range kinds {
		x := cuda.Attention{Batch: a.Batch, Seq: a.Seq, KSeq: a.KSeq, KHeads: a.Heads, Group: a.Group, Dim: a.Dim, Scale: a.Scale, Causal: a.Causal, Window: a.Window, Type: value(shortName(a.Elem))}
		for _, grad := range []bool{false, true} {
			if p, n := f.prepare(x, grad); p != nil {
				f.ways[fusedKind{x, grad}], f.calls[fusedKind{x, grad}] = p, n
				most = max(most, p.Workspace)
			}
		}
	}
	if most == 0 {
		return nil
	}
	if f.room, err = d.take(int(most)); err != nil {
		clear(f.ways) // there is memory for our own, which take none
	}
	return nil
}

// shortName is an element's type as kernels' names have it.
func shortName(e rt.Elem) string {
	return [...]string{rt.F32: "f32", rt.F64: "f64", rt.BF16: "bf16", rt.F16: "f16"}[e]
}

// prepare is a plan for a part of the batch, as large as the workspace allows, and how many parts there are; nil if there is none.
func (f *fused) prepare(x cuda.Attention, grad bool) (*cuda.AttentionPlan, int) {
	whole := x.Batch
	for n := 1; n <= whole; n++ {
		if whole%n != 0 {
			continue
		}
		x.Batch = whole / n
		if grad && scoreBytes(&x) > attentionRoom {
			continue
		}
		if p, err := f.of.Prepare(x, grad, attentionRoom); err == nil {
			return p, n
		} else if !grad {
			break
		}
	}
	return nil, 0
}

// scoreBytes is what the scores of all heads take in 16 bits.
func scoreBytes(x *cuda.Attention) int64 {
	return 2 * int64(x.Batch) * int64(x.KHeads*x.Group) * int64(x.Seq) * int64(x.KSeq)
}

func (f *fused) close() (err error) {
	for _, p := range f.ways {
		err = errors.Join(err, p.Close())
	}
	return errors.Join(err, f.of.Close())
}

// kind is what cuDNN is to be asked for, if it knows such attention: each query sees the same keys, or those up to its own place.
func (f *fused) kind(s *cpu.AttentionShape, types string, grad bool) (k fusedKind, ok bool) {
	if len(f.ways) == 0 || types != "bf16" && types != "f16" || s.Dropout > 0 || s.Softcap > 0 || s.Alibi || s.More || s.Half > 0 || s.KHalf > 0 || s.Dim != s.VDim ||
		s.Causal && s.Pos0 != s.KPos0 || s.Window > 0 && s.Seq > s.KSeq {
		return k, false
	}
	return fusedKind{cuda.Attention{Batch: s.Batch, Seq: s.Seq, KSeq: s.KSeq, KHeads: s.Heads, Group: s.Group, Dim: s.Dim, Scale: s.Scale, Causal: s.Causal, Window: s.Window, Type: value(types)}, grad}, true
}

// attendFused puts attention on the current stream as cuDNN computes it; it returns false, and does nothing, where that is not to be had.
func (d *device) attendFused(s *cpu.AttentionShape, types string, grad bool, at cuda.AttentionOperands) bool {
	k, ok := d.fused.kind(s, types, grad)
	p := d.fused.ways[k]
	if !ok || p == nil || d.on != d.compute {
		return false
	}
	n := d.fused.calls[k]
	queries, keys := s.Seq*s.Heads*s.Group, s.KSeq*s.Heads
	rows := [...]int{cuda.AttentionO: queries * s.Dim * 2, cuda.AttentionL: queries * 4, cuda.AttentionQ: queries * s.Dim * 2, cuda.AttentionK: keys * s.Dim * 2, cuda.AttentionV: keys * s.Dim * 2,
		cuda.AttentionDO: queries * s.Dim * 2, cuda.AttentionDQ: queries * s.Dim * 2, cuda.AttentionDK: keys * s.Dim * 2, cuda.AttentionDV: keys * s.Dim * 2}
	for i, x := range at {
		if x%cuda.Alignment != 0 || n > 1 && s.Batch/n*rows[i]%cuda.Alignment != 0 {
			return false
		}
	}
	for range n {
		rt.Check(d.stream().Attend(p, &at, d.fused.room))
		for i := range at {
			at[i] += cuda.Pointer(s.Batch / n * rows[i])
		}
	}
	return true
}
