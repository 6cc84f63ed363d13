package costmodel

import (
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
)

// testDevices returns a GPU and a CPU whose ops are limited by memory traffic.
func testDevices() (gpu, cpu Device) {
	gpu, cpu = Device{bandwidth: 1e12}, Device{bandwidth: 1e12, cores: 1}
	for i := range numKinds {
		gpu.rate[i], cpu.rate[i] = 1e18, 1e18
	}
	return gpu, cpu
}

// A GPU computes a norm's gradients with one call, so that the sums for the gain and the bias read nothing. A CPU reads
// their operands again.
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
	f := &ir.Func{Nodes: []*ir.Node{dgain, dbias, dx}}
	gpu, cpu := testDevices()
	for name, c := range map[string]struct {
		device  Device
		kernels float64
		bytes   Bytes
	}{
		"GPU": {gpu, 3, 3*2*rows*cols + 2*cols + 2*4*cols},
		"CPU": {cpu, 3, 6*2*rows*cols + 2*cols + 2*4*cols},
	} {
		calls := fusion.Of(f, name == "GPU", ir.Mesh{})
		kernels, time := 0.0, Seconds(0)
		for _, n := range calls.Nodes {
			o := OpOfCall(n, calls.Call(n), ir.Mesh{})
			kernels += o.Kernel
			time += c.device.Within(&o)
		}
		if want := c.bytes.Over(1e12); kernels != c.kernels || time < want*(1-1e-9) || time > want*(1+1e-9) {
			t.Errorf("%s: %v kernels take %v, want %v and %v", name, kernels, time, c.kernels, want)
		}
	}
}

// A GEMM's call reads the bias and the residual that it adds, and writes GELU's input only if other ops read that. The
// separate ops would read and write the result once more each.
func TestEpiloguesTakeNoPass(t *testing.T) {
	const head = `model m
segment s x1
func s.forward
  input x : bf16[batch=2,seq=4,hidden=8] at x+0
  input w : bf16[hidden=8,ffn=16] at params+0
  input b : bf16[ffn=16] at params+256
  input r : bf16[batch=2,seq=4,ffn=16] at slot+0
  p = matmul x, w : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+0
`
	const gemm, row, result = 2 * (8*8 + 8*16 + 8*16), 2 * 16, 2 * 8 * 16
	for name, c := range map[string]struct {
		ops   string
		bytes float64
		flops float64
	}{
		"a bias": {`  q = add p, b : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+256
  return q
`, gemm + row, 8 * 16},
		"a residual": {`  q = add p, r : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+256
  return q
`, gemm + result, 8 * 16},
		"a bias and GELU": {`  q = add p, b : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+256
  g = gelu q : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+512
  return g
`, gemm + row, 13 * 8 * 16},
		"a bias and GELU whose input is saved": {`  q = add p, b : bf16[batch=2,seq=4,ffn=16] !mlp at slot+256
  g = gelu q : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+512
  return q, g
`, gemm + row + result, 13 * 8 * 16},
		"GELU's derivative": {`  d = gelu_grad p, r : bf16[batch=2,seq=4,ffn=16] !mlp at workspace+256
  return d
`, gemm + result, 20 * 8 * 16},
	} {
		m, err := ir.ParseModel(head + c.ops)
		if err != nil {
			t.Fatal(name, err)
		}
		calls := fusion.Of(m.Segments[0].Forward, true, ir.Mesh{})
		if len(calls.Nodes) != 1 {
			t.Fatalf("%s: %d calls", name, len(calls.Nodes))
		}
		n := calls.Nodes[0]
		o := OpOfCall(n, calls.Call(n), ir.Mesh{})
		if o.Bytes+o.Fused.Bytes != c.bytes || o.Fused.Flops != c.flops || o.Kernel != 1 {
			t.Errorf("%s: %v + %v bytes, %v flops, %v kernels; want %v bytes, %v flops", name, o.Bytes, o.Fused.Bytes,
				o.Fused.Flops, o.Kernel, c.bytes, c.flops)
		}
		_, cpu := testDevices()
		cpu.rate[Vector] = 1e9
		if got, least := cpu.Within(&o), Seconds(c.flops/1e9); got < least {
			t.Errorf("%s: a CPU takes %v, want at least the epilogue's %v", name, got, least)
		}
	}
}
