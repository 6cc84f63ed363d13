package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// planc's own matmuls in FP8 run at the rate of fp8 and others at bf16's on the same device; the passes before come
// on top.
func TestFP8OfPlanc(t *testing.T) {
	c, err := Resolve(Ref{Node: "dgx-h100"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	fp8, ok := c.DeviceOf(&PlancKernels, "fp8")
	wide, also := c.DeviceOf(&PlancKernels, "bf16")
	if !ok || !also {
		t.Fatal("an H100 computes in fp8 and bf16")
	}
	if slower, _ := c.DeviceOf(&Kernels{Matrix: 1, Attention: 1, Memory: 1}, "fp8"); slower.wide != 0 {
		t.Error("another engine's products are its own affair")
	}
	plain := Op{Kind: Matrix, Flops: 2 * 8192 * 8192 * 8192, Bytes: 3 * 2 * 8192 * 8192,
		Shape: GEMM{8192, 8192, 8192, 1}, Kernel: 1}
	rounded := plain
	rounded.FP8 = 2 * 8192 * 8192
	if a, b := fp8.Within(&plain), wide.Within(&plain); a != b {
		t.Errorf("a product that is not in 8 bits takes %v, in bf16 %v", a, b)
	}
	passes := Bytes(rounded.FP8 * fp8Bytes).Over(fp8.bandwidth)
	if a, b := fp8.Within(&rounded), wide.Within(&plain); !(a > passes && a < 0.75*b) {
		t.Errorf("in 8 bits it takes %v, %v of it passes before; in bf16 %v", a, passes, b)
	}
	half := *c
	half.Measured.FP8 = 0.5
	slower, _ := half.DeviceOf(&PlancKernels, "fp8")
	if a, b := slower.Within(&rounded)-passes, fp8.Within(&rounded)-passes; math.Abs(float64(a/b/2-1)) > 1e-9 {
		t.Errorf("measured at half the rate it takes %v, not twice %v", a, b)
	}
	if a, b := slower.Within(&plain), fp8.Within(&plain); a != b {
		t.Errorf("what is not in 8 bits takes %v then, not %v", a, b)
	}
	n := &ir.Node{Op: ir.OpMatMul, Attr: ir.Attr{In: "e4m3,e4m3"}}
	for _, dims := range [][2]ir.Dim{{ir.Batch, ir.Hidden}, {ir.Hidden, ir.FFN}, {ir.Batch, ir.FFN}} {
		v := &ir.Value{Type: ir.Type{Elem: ir.BF16, Dims: []ir.Extent{{Dim: dims[0], Size: 64},
			{Dim: dims[1], Size: 64}}}}
		if len(n.Args) < 2 {
			n.Args = append(n.Args, v)
		} else {
			n.Outs = append(n.Outs, v)
		}
	}
	if o := OpOf(n, ir.Mesh{}); o.FP8 != 2*64*64 || o.Kernel != 5 {
		t.Errorf("%+v: %v numbers are rounded by %v kernels", o, o.FP8, o.Kernel)
	}
}
