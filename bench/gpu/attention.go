//go:build cuda && linux

package main

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/runtime/cpu"
)

// attentionSizes are the sizes of models. Results are compared at the length compared, and timed at seq.
var attentionSizes = []struct{ batch, heads, group, dim, seq, compared int }{
	{16, 12, 1, 64, 1024, 384}, {4, 25, 1, 64, 1024, 384}, {16, 20, 1, 64, 1024, 384}, {4, 12, 1, 64, 4096, 384},
	{8, 4, 8, 64, 1024, 384}, {4, 8, 4, 128, 4096, 256}, {8, 16, 1, 80, 1024, 256},
}

// attentions measures causal attention and its gradient.
func attentions(l *lab, r *Result) error {
	var all []Measured
	for _, s := range attentionSizes {
		shape := cpu.AttentionShape{Batch: s.batch, Seq: s.seq, KSeq: s.seq, Heads: s.heads, Group: s.group,
			Dim: s.dim, VDim: s.dim, Scale: 0.125, Mask: cpu.AttentionMask{Causal: true}}
		small := shape
		small.Batch, small.Seq, small.KSeq = 1, s.compared, s.compared
		if l.tiny {
			small.Heads, small.Seq, small.KSeq = 1, 24, 24
			shape = small
		}
		for _, suffix := range []string{"", cudnnSuffix} {
			if suffix != "" && l.fused == nil {
				continue
			}
			ms, err := l.attention(&shape, &small, suffix)
			l.release()
			if refused := (refusedError{}); errors.As(err, &refused) {
				r.note("cuDNN refuses %s: %v", ms[0].Size, refused)
				continue
			}
			if err != nil {
				ms[0].Why = err.Error()
			}
			all = append(all, ms[:]...)
		}
	}
	r.note("%s", l.attentionBackend())
	tabulateKernels(r, all, l.rates)
	return nil
}

// attention compares results on the small shape and times the other, with planc's kernels or with cuDNN.
func (l *lab) attention(shape, small *cpu.AttentionShape, suffix string) (ms [2]Measured, err error) {
	rows := shape.Heads * shape.Group
	flops := 4 * float64(shape.Batch*rows) * float64(shape.Seq) * float64(shape.Seq) * float64(shape.Dim) / 2
	q, kv := float64(shape.Batch*shape.Seq*rows*shape.Dim*2), float64(shape.Batch*shape.Seq*shape.Heads*shape.Dim*2)
	size := fmt.Sprintf("%d × %d heads (%d of keys) of %d × %d tokens", shape.Batch, rows, shape.Heads,
		shape.Dim, shape.Seq)
	ms[0] = Measured{Name: "attention" + suffix, Types: "bf16", Size: size, Error: -1, Bound: 8e-3, Flops: flops,
		Bytes: 2*q + 2*kv}
	ms[1] = Measured{Name: "its gradient" + suffix, Types: "bf16", Size: size, Error: -1, Bound: 1.5e-2,
		Flops: 2.5 * flops, Bytes: 4*q + 4*kv}
	var results [2][4][]float64 // by type (bf16, f64): o; dq, dk, dv
	for i, types := range []string{"bf16", "f64"} {
		a, err := l.attend(small, types)
		if err != nil {
			return ms, err
		}
		if err := a.useCuDNN(l, small, suffix); err != nil {
			return ms, err
		}
		for _, run := range a.runs {
			if err := run(); err != nil {
				return ms, err
			}
		}
		results[i], err = a.read(l)
		if err != nil {
			return ms, err
		}
		l.release()
	}
	ms[0].Error = trial.RelativeError(results[0][0], results[1][0])
	for i := 1; i < 4; i++ {
		ms[1].Error = max(ms[1].Error, trial.RelativeError(results[0][i], results[1][i]))
	}
	a, err := l.attend(shape, "bf16")
	if err != nil {
		return ms, err
	}
	if err := a.useCuDNN(l, shape, suffix); err != nil {
		return ms, err
	}
	for i := range ms {
		ms[i].Seconds, err = l.time(a.runs[i])
		if err != nil {
			return ms, err
		}
	}
	return ms, nil
}

// deviceAttention is attention with its operands on the device.
type deviceAttention struct {
	types       string
	runs        [2]func() error
	results     [4]cuda.Memory
	q, kv, rows int // elements
	operands    cuda.AttentionOperands
}

func (a *deviceAttention) read(l *lab) (v [4][]float64, err error) {
	for i, m := range a.results {
		n := a.q
		if i > 1 {
			n = a.kv
		}
		b, err := l.get(m, n*trial.ElemBytes(a.types))
		if err != nil {
			return v, err
		}
		v[i] = trial.Read(a.types, b)
	}
	return v, nil
}

// attend copies random operands to the device.
func (l *lab) attend(s *cpu.AttentionShape, types string) (*deviceAttention, error) {
	a := &deviceAttention{types: types, rows: s.Batch * s.Seq * s.Heads * s.Group,
		kv: s.Batch * s.KSeq * s.Heads * s.Dim}
	a.q = a.rows * s.Dim
	var err error
	room := func(n, seed int, t string) (m cuda.Memory) {
		if err == nil {
			m, err = l.put(trial.Random(t, n, seed))
		}
		return m
	}
	wide := "f32"
	if types == "f64" {
		wide = types
	}
	q, k, v, do := room(a.q, 1, types), room(a.kv, 2, types), room(a.kv, 3, types), room(a.q, 4, types)
	lse, dot := room(a.rows, 5, wide), room(a.rows, 6, wide)
	o, dq, dk, dv := room(a.q, 7, types), room(a.q, 8, types), room(a.kv, 9, types), room(a.kv, 10, types)
	if err != nil {
		return nil, err
	}
	a.results = [4]cuda.Memory{o, dq, dk, dv}
	// in the order of cuda.AttentionO and what follows
	for i, m := range [...]cuda.Memory{o, lse, q, k, v, do, dq, dk, dv} {
		a.operands[i] = m.Pointer
	}
	shape := kernels.AttentionShape(s)
	launch := func(step kernels.Step, args *cuda.Args) error {
		f, _, err := l.kernel(step.Kernel, types)
		if err != nil {
			return err
		}
		return l.stream.Launch(f, cuda.Shape{Grid: step.Launch.Grid, Block: step.Launch.Block}, args)
	}
	list := func(ms ...cuda.Memory) *cuda.Args {
		args := &cuda.Args{}
		args.Reset()
		for _, m := range ms {
			args.Pointer(m.Pointer)
		}
		return args
	}
	a.runs[0] = func() error { return launch(kernels.Attention(s, types), list(o, lse, q, k, v).Bytes(shape, 8)) }
	grad := kernels.AttentionGrad(s, types)
	a.runs[1] = func() error {
		if err := launch(grad[0], list(dot, do, o).Uint64(uint64(a.rows)).Int32(int32(s.VDim))); err != nil {
			return err
		}
		if err := launch(grad[1], list(dq, do, q, k, v, lse, dot).Bytes(shape, 8)); err != nil {
			return err
		}
		return launch(grad[2], list(dk, dv, do, q, k, v, lse, dot).Bytes(shape, 8))
	}
	return a, nil
}
