//go:build cuda && linux

package main

import (
	"fmt"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/cpu"
)

// cudnnSuffix distinguishes measurements of cuDNN's attention from those of planc's kernels.
const cudnnSuffix = " by cuDNN"

// openCuDNN opens cuDNN if it is installed.
func (l *lab) openCuDNN() {
	dnn, err := cuda.OpenDNN()
	if err == nil {
		l.fused, err = dnn.NewAttentions()
	}
	l.cudnnErr = err
	if err == nil {
		l.dnn = dnn
	}
}

// attentionBackend returns which implementation programs use for attention on this machine.
func (l *lab) attentionBackend() string {
	if l.fused == nil {
		return fmt.Sprintf("attention: planc's kernels (cuDNN not available: %v)", l.cudnnErr)
	}
	return fmt.Sprintf("attention: cuDNN %s (%s) for bf16 and fp16 shapes that it supports", l.dnn.Version, l.dnn.Path)
}

// refusedError says that cuDNN does not support attention of a shape; programs then use planc's kernels.
type refusedError struct{ error }

// useCuDNN makes the runs use cuDNN if suffix is cudnnSuffix and the operands are bf16.
func (a *deviceAttention) useCuDNN(l *lab, s *cpu.AttentionShape, suffix string) error {
	if suffix == "" || a.types != "bf16" {
		return nil
	}
	x := cuda.Attention{Batch: s.Batch, Seq: s.Seq, KSeq: s.KSeq, KHeads: s.Heads, Group: s.Group, Dim: s.Dim,
		Scale: s.Scale, Causal: s.Causal, Window: s.Window, Type: cuda.ValueBFloat16}
	for i, grad := range []bool{false, true} {
		p, err := l.fused.PrepareParts(x, grad, cuda.MaxAttentionWorkspace)
		if err != nil {
			return refusedError{err}
		}
		workspace, err := l.alloc(p.Workspace)
		if err != nil {
			return err
		}
		a.runs[i] = func() error { return l.stream.AttendParts(p, a.operands, workspace) }
	}
	return nil
}

// alloc allocates memory, which the lab frees after the current measurement.
func (l *lab) alloc(bytes int64) (cuda.Memory, error) {
	m, err := cuda.Alloc(max(bytes, 256))
	if err == nil {
		l.allocated = append(l.allocated, m)
	}
	return m, err
}
