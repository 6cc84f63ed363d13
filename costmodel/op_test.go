package costmodel

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// A GPU computes a norm's gradients with one kernel, so that the sums for the gain and the bias read nothing. A CPU
// reads their operands again.
func TestNormGradientsReadOperandsOnce(t *testing.T) {
	const rows, cols = 4096, 1024
	x := ir.Type{Elem: ir.BF16, Dims: []ir.Extent{{Dim: ir.Seq, Size: rows}, {Dim: ir.Hidden, Size: cols}}}
	col := ir.Type{Elem: ir.BF16, Dims: x.Dims[1:]}
	dy, in, gain := &ir.Value{Type: x}, &ir.Value{Type: x}, &ir.Value{Type: col}
	sum := func(op ir.Op, args ...*ir.Value) *ir.Node {
		out := &ir.Value{Type: ir.Type{Elem: ir.F32, Dims: col.Dims}, Place: ir.Place{Region: ir.PlaceGrad}}
		return &ir.Node{Op: op, Args: args, Outs: []*ir.Value{out}}
	}
	dx := &ir.Node{Op: ir.OpLayerNormDX, Args: []*ir.Value{dy, in, gain}, Outs: []*ir.Value{{Type: x}}}
	dgain, dbias := sum(ir.OpLayerNormDGain, dy, in), sum(ir.OpReduceSum, dy)
	opOf := OpsOf(&ir.Func{Nodes: []*ir.Node{dgain, dbias, dx}}, ir.Mesh{})
	gpu, cpu := Device{bandwidth: 1e12}, Device{bandwidth: 1e12, cores: 1}
	for i := range numKinds {
		gpu.rate[i], cpu.rate[i] = 1e18, 1e18
	}
	for _, c := range []struct {
		node          *ir.Node
		shared, bytes float64
	}{{dx, 0, 3*2*rows*cols + 2*cols}, {dgain, 2 * 2 * rows * cols, 4 * cols}, {dbias, 2 * rows * cols, 4 * cols}} {
		o := opOf(c.node)
		if o.Shared != c.shared || o.Bytes-o.Shared < c.bytes || o.Bytes-o.Shared > c.bytes+8*cols {
			t.Errorf("%v: %v of %v bytes are shared, want %v and about %v left", c.node.Op, o.Shared, o.Bytes, c.shared,
				c.bytes)
		}
		if got, want := gpu.Within(&o), Bytes(o.Bytes-o.Shared).Over(1e12); got != want {
			t.Errorf("%v takes %v on a GPU, want %v", c.node.Op, got, want)
		}
		if got, least := cpu.Within(&o), Bytes(o.Bytes).Over(1e12); got < least {
			t.Errorf("%v takes %v on a CPU, want at least %v", c.node.Op, got, least)
		}
	}
}
