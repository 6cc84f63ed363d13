package main

import (
	"reflect"
	"strings"
	"testing"
)

// chainProgram is a generated program with a norm after an addition, launched by two functions, and a loss's
// gradient.
const chainProgram = `package main

var (
	chain1 = gpu.Fused{
		Kernel:  "chain1",
		Rowwise: true,
	}
	chain2 = gpu.Fused{Kernel: "chain2"}
	chain3 = gpu.Fused{Kernel: "chain3"}
)

func blockForward(r *rt.Rank, b *rt.Block) {
	x := gpu.View[num.BF16](r, b.X, 48)
	gain := gpu.View[num.BF16](r, b.Params[0]+32, 8)
	y := gpu.View[num.BF16](r, b.Work, 48)
	if !gpu.MatMulOn(r, y) {
		gpu.Chain(r, chain1, 6, 8, x, gain, y)
	}
}

func blockRemat(r *rt.Rank, b *rt.Block) {
	x2 := gpu.View[num.BF16](r, b.X, 48)
	gain := gpu.View[num.BF16](r, b.Params[0]+32, 8)
	y := gpu.View[num.BF16](r, b.Work, 48)
	gpu.Chain(r, chain1, 6, 8, x2, gain, y)
}

func lossBackward(r *rt.Rank, b *rt.Block) {
	labels := gpu.View[int32](r, b.Y, 6)
	x := gpu.View[float](r, b.X, 6)
	d := gpu.View[num.BF16](r, b.Work, 30)
	gpu.Chain(r, chain2, 6, 5, x, d, gpu.IDs(labels, 1, 4), gpu.Limit(3))
}

func mlp(r *rt.Rank, b *rt.Block) {
	both := gpu.View[num.BF16](r, b.Work, 60)
	gate := both
	up := both.From(5)
	y := gpu.View[num.BF16](r, b.Slot, 30)
	gpu.Chain(r, chain3, 6, 5, gate, up, y)
}
`

const chainSource = `
// for i, j := range [rows, cols] { w0 = Add(v0, v1); w1 = RMSNorm(w0, v1) }
template <int N> __device__ void chain1Rows(const bf16* x0, const bf16* x1, bf16* x2, int rows, int cols) {
}
KERNEL chain1(const bf16* x0, const bf16* x1, bf16* x2, int rows, int cols) {

// for i, j := range [rows, cols] { w0 = PickGrad(v0) }
template <int N> __device__ void chain2Rows(const float* x0, bf16* x1, const int* x2, int lo2, int n2, int limit3, int rows, int cols) {
}
KERNEL chain2(const float* x0, bf16* x1, const int* x2, int lo2, int n2, int limit3, int rows, int cols) {

// for i, j := range [rows, cols] { w0 = Mul(v0, v1) }
template <int N> __device__ void chain3Rows(const bf16* x0, const bf16* x1, bf16* x2, int rows, int cols) {
}
KERNEL chain3(const bf16* x0, const bf16* x1, bf16* x2, int rows, int cols) {
`

// readChains finds launches with their kernels' ops and operands, and merges equal ones.
func TestReadChains(t *testing.T) {
	got, err := readChains([]byte(chainProgram), []byte(chainSource))
	if err != nil {
		t.Fatal(err)
	}
	want := []fusedLaunch{
		{Kernel: "chain1", Ops: "Add RMSNorm", Where: "blockForward, blockRemat", Rowwise: true, Rows: 6, Cols: 8,
			Operands: []chainOperand{{Types: "bf16", N: 48}, {Types: "bf16", N: 8}, {Types: "bf16", N: 48,
				Written: true}}},
		{Kernel: "chain2", Ops: "PickGrad", Where: "lossBackward", Rows: 6, Cols: 5,
			Operands: []chainOperand{{Types: "f32", N: 6}, {Types: "bf16", N: 30, Written: true}, {Types: "i32", N: 6,
				Indexed: true, Lo: 1, Size: 4}, {N: 3}}},
		{Kernel: "chain3", Ops: "Mul", Where: "mlp", Rows: 6, Cols: 5, Operands: []chainOperand{
			{Types: "bf16", N: 60, Pitch: 10}, {Types: "bf16", N: 55, Pitch: 10},
			{Types: "bf16", N: 30, Written: true}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for i, bytes := range []float64{2 * (48 + 8 + 48), 4*6 + 2*30 + 4*6, 2 * 3 * 30} {
		if got[i].bytes() != bytes {
			t.Errorf("%s: %v bytes, not %v", got[i].Kernel, got[i].bytes(), bytes)
		}
	}
}

// Code that readChains does not understand is an error.
func TestReadChainsRefuses(t *testing.T) {
	for of, with := range map[string]string{"x, gain, y)": "x.From(i0*8), gain, y)",
		"6, 8, x, gain": "rows, 8, x, gain", "x2, gain, y)": "x2, y)", "gpu.Chain(": "gpu.Other(",
		"b.Work, 30)": "b.Work, n)"} {
		if got, err := readChains([]byte(strings.ReplaceAll(chainProgram, of, with)), []byte(chainSource)); err == nil {
			t.Errorf("with %s: %+v", with, got)
		}
	}
}
