//go:build cuda && linux

package main

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/cpu"
)

// dnnName distinguishes measurements of cuDNN's attention from those of planc's kernels.
const dnnName = " by cuDNN"

// fusedRoom is the size in bytes of the workspace that a program gives cuDNN's attention.
const fusedRoom = 256 << 20

// openFused opens cuDNN if it is installed.
func (l *lab) openFused() {
	dnn, err := cuda.OpenDNN()
	if err == nil {
		l.fused, err = dnn.NewAttentions()
	}
	l.attending = err
	if err == nil {
		l.dnn = dnn
	}
}

// attends returns which implementation programs use for attention on this machine.
func (l *lab) attends() string {
	if l.fused == nil {
		return "our own kernels attend, without cuDNN: " + l.attending.Error()
	}
	return "cuDNN " + l.dnn.Version + " at " + l.dnn.Path + " attends in bf16 and fp16, where it takes it"
}

// refusedError says that cuDNN does not support attention of a shape; programs then use planc's kernels.
type refusedError struct{ error }

// by makes the runs use cuDNN, if that is asked for, with operands in bf16.
func (a *attended) by(l *lab, s *cpu.AttentionShape, by string) error {
	if by == "" || a.types != "bf16" {
		return nil
	}
	x := cuda.Attention{Batch: s.Batch, Seq: s.Seq, KSeq: s.KSeq, KHeads: s.Heads, Group: s.Group, Dim: s.Dim,
		Scale: s.Scale, Causal: s.Causal, Window: s.Window, Type: cuda.ValueBFloat16}
	for i, grad := range []bool{false, true} {
		p, err := l.fused.PrepareParts(x, grad, fusedRoom)
		if err != nil {
			return refusedError{err}
		}
		room, err := l.room(p.Workspace)
		if err != nil {
			return err
		}
		a.runs[i] = func() error { return l.stream.AttendParts(p, a.operands, room) }
	}
	return nil
}

// room allocates memory until the release.
func (l *lab) room(bytes int64) (cuda.Memory, error) {
	m, err := cuda.Alloc(max(bytes, 256))
	if err == nil {
		l.taken = append(l.taken, m)
	}
	return m, err
}
