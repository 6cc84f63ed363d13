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

// dnnAttention holds the prepared plans of cuDNN's attention, and its workspace. One workspace suffices,
// because all calls run on the compute stream.
type dnnAttention struct {
	attentions *cuda.Attentions // nil if cuDNN is missing or not used
	plans      map[dnnAttentionKind]cuda.AttentionParts
	workspace  cuda.Memory
}

// dnnAttentionKind identifies a shape of attention, or of its gradient.
type dnnAttentionKind struct {
	cuda.Attention
	grad bool
}

// openDNNAttention prepares the kinds of attention that the program uses, as far as cuDNN supports them.
// planc's own kernels compute the rest, and everything if cuDNN fails.
func (d *device) openDNNAttention(m *machine) error {
	if d.rank.ID != m.first || len(d.rank.Program.Attentions) == 0 {
		_, err := d.prepareDNNAttention(m)
		return err
	}
	own, err := d.prepareDNNAttention(m)
	switch {
	case own == nil:
		m.attentionText = "attention: cuDNN " + m.dnn.Version
	case len(d.dnnAttention.plans) > 0:
		m.attentionText = fmt.Sprintf("attention: cuDNN %s, and planc's own kernels for some shapes (%v)",
			m.dnn.Version, own)
	default:
		m.attentionText = fmt.Sprintf("attention: planc's own kernels (%v)", own)
	}
	return err
}

// prepareDNNAttention prepares the plans. Its first result says why planc's own kernels compute some or all
// of the attention.
func (d *device) prepareDNNAttention(m *machine) (own, err error) {
	kinds := d.rank.Program.Attentions
	switch {
	case len(kinds) == 0:
		return nil, nil
	case usesOwnKernel("attention"):
		return errors.New(ownKernels + " lists attention"), nil
	case m.dnn == nil:
		return m.dnnError, nil
	}
	f := &d.dnnAttention
	f.attentions, err = m.dnn.NewAttentions()
	if err != nil {
		f.attentions = nil
		return err, nil
	}
	d.atClose(func() error { return f.close() })
	f.plans = map[dnnAttentionKind]cuda.AttentionParts{}
	largest := int64(0)
	for _, a := range kinds {
		x := cuda.Attention{Batch: a.Batch, Seq: a.Seq, KSeq: a.KSeq, KHeads: a.Heads, Group: a.Group, Dim: a.Dim,
			Pitch: a.Pitch, Scale: a.Scale, Causal: a.Causal, Window: a.Window, Type: valueType(shortName(a.Elem))}
		for _, grad := range []bool{false, true} {
			p, refused := f.attentions.PrepareParts(x, grad, cuda.MaxAttentionWorkspace)
			if refused != nil {
				own = cmp.Or(own, refused)
				continue
			}
			f.plans[dnnAttentionKind{x, grad}] = p
			largest = max(largest, p.Workspace)
		}
	}
	if largest == 0 {
		return own, nil
	}
	f.workspace, err = d.take(int(largest))
	if err != nil {
		return err, f.discard() // our own kernels need no workspace
	}
	return own, nil
}

// shortName returns an element type as it is spelled in names of kernels.
func shortName(e rt.Elem) string {
	return [...]string{rt.F32: "f32", rt.F64: "f64", rt.BF16: "bf16", rt.F16: "f16"}[e]
}

// discard closes the prepared plans.
func (f *dnnAttention) discard() (err error) {
	for _, p := range f.plans {
		err = errors.Join(err, p.Close())
	}
	clear(f.plans)
	return err
}

func (f *dnnAttention) close() error { return errors.Join(f.discard(), f.attentions.Close()) }

// kind returns the key of the plan for a shape. It returns false if cuDNN does not support such attention.
// It supports full, causal and causal sliding-window masks.
func (f *dnnAttention) kind(s *cpu.AttentionShape, types string, grad bool) (k dnnAttentionKind, ok bool) {
	if len(f.plans) == 0 || types != "bf16" && types != "f16" || s.Dropout > 0 || s.Softcap > 0 || s.Alibi || s.More ||
		s.Half > 0 || s.KHalf > 0 || s.Dim != s.VDim ||
		s.Causal && s.Pos0 != s.KPos0 || s.Window > 0 && s.Seq > s.KSeq {
		return k, false
	}
	return dnnAttentionKind{cuda.Attention{Batch: s.Batch, Seq: s.Seq, KSeq: s.KSeq, KHeads: s.Heads, Group: s.Group,
		Dim: s.Dim, Pitch: s.Pitch, Scale: s.Scale, Causal: s.Causal, Window: s.Window,
		Type: valueType(types)}, grad}, true
}

// launchDNNAttention enqueues attention by cuDNN on the compute stream. It does nothing and returns false if
// cuDNN does not support the attention, on another stream, and for operands that are not aligned.
func (d *device) launchDNNAttention(s *cpu.AttentionShape, types string, grad bool, at cuda.AttentionOperands) bool {
	k, ok := d.dnnAttention.kind(s, types, grad)
	p := d.dnnAttention.plans[k]
	if !ok || p.Parts == 0 || d.current != d.compute {
		return false
	}
	for _, x := range at {
		if x%cuda.Alignment != 0 {
			return false
		}
	}
	rt.Check(d.stream().AttendParts(p, at, d.dnnAttention.workspace))
	return true
}
