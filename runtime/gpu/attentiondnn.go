//go:build cuda && linux

package gpu

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
)

// attentionRoom is how many bytes of workspace cuDNN's attention may take; for as much its own front end lets it keep
// the gradient of scores. Where those of all sequences do not fit, it is called for some at a time, and not at all if
// one's do not.
const attentionRoom = 256 << 20

// fused is attention by cuDNN: what is ready, and the workspace, of which there is one, since all runs on the compute
// stream.
type fused struct {
	of   *cuda.Attentions // nil: there is no cuDNN, or it is not wanted
	ways map[fusedKind]cuda.AttentionParts
	room cuda.Memory
}

// fusedKind is a kind of attention, or of its gradient.
type fusedKind struct {
	cuda.Attention
	grad bool
}

// openFused makes ready what the program will want of cuDNN, as far as cuDNN takes it. What it does not take, or fails
// to, is computed by kernels of our own.
func (d *device) openFused(m *machine) error {
	if d.rank.ID != m.first || len(d.rank.Program.Attends) == 0 {
		_, err := d.prepareFused(m)
		return err
	}
	own, err := d.prepareFused(m)
	switch {
	case own == nil:
		m.attend = "attention: cuDNN " + m.dnn.Version
	case len(d.fused.ways) > 0:
		m.attend = fmt.Sprintf("attention: cuDNN %s, in part planc's own kernels (%v)", m.dnn.Version, own)
	default:
		m.attend = fmt.Sprintf("attention: planc's own kernels (%v)", own)
	}
	return err
}

// prepareFused also returns why some or all of it is left to our own kernels.
func (d *device) prepareFused(m *machine) (own, err error) {
	kinds := d.rank.Program.Attends
	switch {
	case len(kinds) == 0:
		return nil, nil
	case ours("attention"):
		return errors.New(ownKernels + " has attention"), nil
	case m.dnn == nil:
		return m.noDNN, nil
	}
	f := &d.fused
	f.of, err = m.dnn.NewAttentions()
	if err != nil {
		f.of = nil
		return err, nil
	}
	d.atClose(func() error { return f.close() })
	f.ways = map[fusedKind]cuda.AttentionParts{}
	most := int64(0)
	for _, a := range kinds {
		x := cuda.Attention{Batch: a.Batch, Seq: a.Seq, KSeq: a.KSeq, KHeads: a.Heads, Group: a.Group, Dim: a.Dim,
			Scale: a.Scale, Causal: a.Causal, Window: a.Window, Type: value(shortName(a.Elem))}
		for _, grad := range []bool{false, true} {
			p, refused := f.of.PrepareParts(x, grad, attentionRoom)
			if refused != nil {
				own = cmp.Or(own, refused)
				continue
			}
			f.ways[fusedKind{x, grad}] = p
			most = max(most, p.Workspace)
		}
	}
	if most == 0 {
		return own, nil
	}
	f.room, err = d.take(int(most))
	if err != nil {
		return err, f.none() // our own take none
	}
	return own, nil
}

// shortName is an element's type as kernels' names have it.
func shortName(e rt.Elem) string {
	return [...]string{rt.F32: "f32", rt.F64: "f64", rt.BF16: "bf16", rt.F16: "f16"}[e]
}

// none gives up what was prepared.
func (f *fused) none() (err error) {
	for _, p := range f.ways {
		err = errors.Join(err, p.Close())
	}
	clear(f.ways)
	return err
}

func (f *fused) close() error { return errors.Join(f.none(), f.of.Close()) }

// kind is what cuDNN is to be asked for, if it knows such attention: each query sees the same keys, or those up to its
// own place.
func (f *fused) kind(s *cpu.AttentionShape, types string, grad bool) (k fusedKind, ok bool) {
	if len(f.ways) == 0 || types != "bf16" && types != "f16" || s.Dropout > 0 || s.Softcap > 0 || s.Alibi || s.More ||
		s.Half > 0 || s.KHalf > 0 || s.Dim != s.VDim ||
		s.Causal && s.Pos0 != s.KPos0 || s.Window > 0 && s.Seq > s.KSeq {
		return k, false
	}
	return fusedKind{cuda.Attention{Batch: s.Batch, Seq: s.Seq, KSeq: s.KSeq, KHeads: s.Heads, Group: s.Group,
		Dim: s.Dim, Scale: s.Scale, Causal: s.Causal, Window: s.Window, Type: value(types)}, grad}, true
}

// attendFused puts attention on the current stream as cuDNN computes it; it returns false, and does nothing, where that
// is not to be had.
func (d *device) attendFused(s *cpu.AttentionShape, types string, grad bool, at cuda.AttentionOperands) bool {
	k, ok := d.fused.kind(s, types, grad)
	p := d.fused.ways[k]
	if !ok || p.Parts == 0 || d.on != d.compute {
		return false
	}
	for _, x := range at {
		if x%cuda.Alignment != 0 {
			return false
		}
	}
	rt.Check(d.stream().AttendParts(p, at, d.fused.room))
	return true
}
