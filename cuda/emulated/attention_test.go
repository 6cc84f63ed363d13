//go:build cuda && linux

package emulated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// attentions are kinds of attention that differ in all parameters of cuDNN.
var attentions = []cuda.Attention{
	{Batch: 2, Seq: 9, KSeq: 9, KHeads: 2, Group: 1, Dim: 8, Scale: 0.5, Causal: true, Type: cuda.ValueBFloat16},
	{Batch: 1, Seq: 11, KSeq: 11, KHeads: 2, Group: 3, Dim: 16, Scale: 0.25, Causal: true, Window: 4,
		Type: cuda.ValueFloat16},
	{Batch: 3, Seq: 5, KSeq: 7, KHeads: 1, Group: 2, Dim: 8, Scale: 0.3, Type: cuda.ValueFloat16},
	{Batch: 2, Seq: 6, KSeq: 8, KHeads: 3, Group: 1, Dim: 8, Scale: 1, Causal: true, Type: cuda.ValueBFloat16},
	{Batch: 2, Seq: 9, KSeq: 9, KHeads: 2, Group: 1, Dim: 8, Pitch: 48, Scale: 0.5, Causal: true,
		Type: cuda.ValueFloat16},
}

// attended is attention on a machine, with all that a run needs.
type attended struct {
	g     *gpu
	s     *cuda.Stream
	a     *cuda.Attentions
	plans [2]*cuda.AttentionPlan
	at    cuda.AttentionOperands
	mem   [len(cuda.AttentionOperands{})]cuda.Memory
	room  cuda.Memory
	host  [len(cuda.AttentionOperands{})][]float64 // after rounding
}

func shapeOf(x cuda.Attention) cpu.AttentionShape {
	return cpu.AttentionShape{Batch: x.Batch, Seq: x.Seq, KSeq: x.KSeq, Heads: x.KHeads, Group: x.Group, Dim: x.Dim,
		VDim: x.Dim, Scale: x.Scale, Mask: cpu.AttentionMask{Causal: x.Causal, Window: x.Window}, Pitch: x.Pitch}
}

// prepared uploads the operands.
func prepared(t *testing.T, x cuda.Attention) *attended {
	g := machine(t, 0)
	r := &attended{g: g, s: g.stream(), a: need(need(cuda.OpenDNN()).NewAttentions())}
	room := int64(0)
	for i := range r.plans {
		r.plans[i] = need(r.a.Prepare(x, i == 1, 1<<20))
		room = max(room, r.plans[i].Workspace)
	}
	r.room = g.memory(room)
	rows := x.Batch * x.Seq * x.KHeads * x.Group
	shape := shapeOf(x)
	ldq, ldk, _ := shape.LD()
	q, k := x.Batch*x.Seq*ldq, x.Batch*x.KSeq*ldk
	for i, n := range [...]int{rows * x.Dim, rows, q, k, k, rows * x.Dim, q, k, k} {
		kind := x.Type
		if i == cuda.AttentionL {
			kind = cuda.ValueFloat32
		}
		v := make([]float64, n)
		for j := range v {
			v[j] = math.Sin(float64(j*7 + i*3))
		}
		b := stored(kind, v)
		r.host[i], r.mem[i] = unstored(kind, b), g.memory(int64(len(b)))
		copy(g.pinned.Slice(), b)
		try(r.s.Upload(r.mem[i], g.pinned.At(0, r.mem[i].Bytes)), r.s.Synchronize())
		r.at[i] = r.mem[i].Pointer
	}
	return r
}

// unstored is the inverse of stored.
func unstored(v cuda.Value, b []byte) (x []float64) {
	for ; len(b) > 0; b = b[widths[v]:] {
		switch v {
		case cuda.ValueFloat32:
			x = append(x, float64(float(b)))
		case cuda.ValueBFloat16:
			x = append(x, float64(num.BF16{Bits: binary.NativeEndian.Uint16(b)}.Wide()))
		case cuda.ValueFloat16:
			x = append(x, float64(num.F16{Bits: binary.NativeEndian.Uint16(b)}.Wide()))
		}
	}
	return x
}

func (r *attended) read(i int, v cuda.Value) []float64 {
	try(r.s.Download(r.g.pinned.At(0, r.mem[i].Bytes), r.mem[i]), r.s.Synchronize())
	return unstored(v, r.g.pinned.Slice()[:r.mem[i].Bytes])
}

func (r *attended) close() {
	for _, p := range r.plans {
		try(p.Close())
	}
	try(r.a.Close())
}

// Attention and its gradient equal the loops of runtime/cpu, including lse, also in a graph.
func TestAttention(t *testing.T) {
	for _, x := range attentions {
		for _, captured := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v %v", x, captured), func(t *testing.T) {
				r := prepared(t, x)
				work := func() error {
					return errors.Join(r.s.Attend(r.plans[0], &r.at, r.room), r.s.Attend(r.plans[1], &r.at, r.room))
				}
				if captured {
					graph := need(r.s.Capture(work))
					try(r.s.Replay(graph), r.s.Synchronize(), graph.Close())
				} else {
					try(work())
				}
				near(t, r, x)
				r.close()
			})
		}
	}
}

// near compares with the loops in f64 on the same operands. The bound covers the rounding of intermediate
// weights and gradients of scores.
func near(t *testing.T, r *attended, x cuda.Attention) {
	s := shapeOf(x)
	want := r.host
	k := cpu.Table[float64]()
	k.Attention(want[cuda.AttentionO], want[cuda.AttentionL], want[cuda.AttentionQ], want[cuda.AttentionK],
		want[cuda.AttentionV], s)
	k.AttentionGrad(want[cuda.AttentionDQ], want[cuda.AttentionDK], want[cuda.AttentionDV], want[cuda.AttentionDO],
		want[cuda.AttentionQ], want[cuda.AttentionK], want[cuda.AttentionV], want[cuda.AttentionO],
		want[cuda.AttentionL], s)
	bound := map[cuda.Value]float64{cuda.ValueBFloat16: 3e-2, cuda.ValueFloat16: 4e-3}[x.Type]
	for _, i := range []int{cuda.AttentionO, cuda.AttentionL, cuda.AttentionDQ, cuda.AttentionDK, cuda.AttentionDV} {
		kind, tolerance := x.Type, bound
		if i == cuda.AttentionL {
			kind, tolerance = cuda.ValueFloat32, 1e-5
		}
		for j, got := range r.read(i, kind) {
			if d := math.Abs(got - want[i][j]); !(d <= tolerance*max(1, math.Abs(want[i][j]))) {
				t.Fatalf("operand %d has %g at %d, want %g", i, got, j, want[i][j])
			}
		}
	}
}
