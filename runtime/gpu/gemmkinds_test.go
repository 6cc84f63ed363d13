//go:build cuda && linux

package gpu

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/gemmchoice"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
)

// kindsOfGEMMs computes GEMMs of every kind in the workspace, as generated code does, and lists them.
var kindsOfGEMMs = []struct {
	kind program.GEMM
	call func(r *rt.Rank, c, pre, row, a, b Buf[num.BF16])
}{
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.BF16}, func(r *rt.Rank, c, _, _, a, b Buf[num.BF16]) {
		MatMul(r, c, a, b, 2, 8, 4, false, false, false)
	}},
	{program.GEMM{Groups: 2, M: 2, N: 2, K: 2, TransposeB: true, In: rt.BF16, Out: rt.BF16},
		func(r *rt.Rank, c, _, _, a, b Buf[num.BF16]) {
			MatMulEach(r, Buf[num.BF16]{c.At, 8}, a, b, 2, 2, 2, 2, false, true, false)
		}},
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.F16}, func(r *rt.Rank, c, _, _, a, b Buf[num.BF16]) {
		MatMul(r, Buf[num.F16](c), a, b, 2, 8, 4, false, false, false)
	}},
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.BF16, Bias: true},
		func(r *rt.Rank, c, _, row, a, b Buf[num.BF16]) { MatMulOn(r, c, row, a, b, 2, 8, 4, false, false) }},
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.BF16, Bias: true, Epilogue: program.GELU, KeepsInput: true},
		func(r *rt.Rank, c, pre, row, a, b Buf[num.BF16]) {
			MatMulGelu(r, c, pre, row, a, b, 2, 8, 4, false, false)
		}},
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.BF16, Epilogue: program.GELU},
		func(r *rt.Rank, c, _, _, a, b Buf[num.BF16]) {
			MatMulGelu(r, c, Buf[num.BF16]{}, Buf[num.BF16]{}, a, b, 2, 8, 4, false, false)
		}},
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.BF16, Epilogue: program.GELUGrad},
		func(r *rt.Rank, c, pre, _, a, b Buf[num.BF16]) {
			MatMulGeluGrad(r, c, pre, a, b, 2, 8, 4, false, false)
		}},
	{program.GEMM{M: 2, N: 4, K: 4, TransposeA: true, In: rt.BF16, Out: rt.F32, Epilogue: program.RowSum},
		func(r *rt.Rank, c, pre, _, a, b Buf[num.BF16]) {
			MatMulBiasGrad(r, Buf[float32]{c.At, 8}, Buf[float32]{pre.At, 4}, a, b, 2, 4, 4, true, false, false)
		}},
	{program.GEMM{M: 2, N: 8, K: 4, In: rt.BF16, Out: rt.BF16, FP8A: "e4m3", FP8B: "e5m2"},
		func(r *rt.Rank, c, _, _, a, b Buf[num.BF16]) {
			MatMul8(r, c, a, b, 0, 2, 8, 4, false, false, false, num.E4M3, num.E5M2)
		}},
}

// multiplying returns a program that computes all kinds of GEMMs in its forward pass, of which its table lacks one.
func multiplying(missing int) *rt.Program {
	p := toy{pp: 1}.program(true)
	for i, k := range kindsOfGEMMs {
		if i != missing {
			p.Segments[1].GEMMs = append(p.Segments[1].GEMMs, k.kind)
		}
	}
	forward := p.Segments[1].Forward
	p.Segments[1].Forward = func(r *rt.Rank, b *rt.Block) {
		at := func(i, n int) Buf[num.BF16] { return View[num.BF16](r, r.Stage.Arena.Workspace.Offset+64*i, n) }
		deviceOf(r).Clear(r.Stage.Arena.Workspace.Offset, 64*5)
		for _, k := range kindsOfGEMMs {
			k.call(r, at(0, 16), at(1, 16), at(2, 8), at(3, 8), at(4, 32))
		}
		forward(r, b)
	}
	return p
}

// A program computes the kinds of GEMMs in its table once before the first step, so that cuBLASLt loads no kernel in a
// step. The emulated cuBLASLt fails a GEMM whose kernel it loads in a step: each kind fails that the table lacks.
func TestGEMMsLoadBeforeSteps(t *testing.T) {
	if _, err := train(t, onGPUs(multiplying(-1), images())); err != nil {
		t.Error(err)
	}
	for i, k := range kindsOfGEMMs {
		if _, err := train(t, onGPUs(multiplying(i), images())); err == nil {
			t.Errorf("%+v is not in the table, and nothing fails", k.kind)
		}
	}
	t.Setenv(ownKernels, "gelu,bias,fp8")
	own := multiplying(-1)
	own.Segments[1].GEMMs = slices.DeleteFunc(own.Segments[1].GEMMs, func(g program.GEMM) bool {
		return g.Epilogue == program.GELUGrad
	})
	if _, err := train(t, onGPUs(own, images())); err != nil {
		t.Error("planc's own kernels replace epilogues: ", err)
	}
}

// With PLANC_TIME_PRODUCTS=1, the first step times algorithms. Before it, operands may overlap and are not initialized:
// nothing is timed.
func TestFirstStepTimesAlgorithms(t *testing.T) {
	t.Setenv(gemmchoice.Timing, "1")
	p := multiplying(-1)
	calls, before, after := 0, 0, 0
	forward := p.Segments[1].Forward
	p.Segments[1].Forward = func(r *rt.Rank, b *rt.Block) {
		if r.ID > 0 {
			forward(r, b)
			return
		}
		calls++
		if calls == 1 {
			before = len(deviceOf(r).timed)
		}
		forward(r, b)
		after = len(deviceOf(r).timed)
	}
	if _, err := train(t, onGPUs(p, images())); err != nil {
		t.Fatal(err)
	}
	if before != 0 || after == 0 {
		t.Errorf("%d kinds of GEMMs are timed before the first step, and %d in it; want none and some", before, after)
	}
}

// If a device cannot allocate the result of a GEMM before the first step, the run returns the error and frees what the
// device had allocated.
func TestFreesDeviceThatDoesNotOpen(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	const rows = 1 << 23
	p := toy{pp: 1}.program(true)
	p.Segments[1].GEMMs = []program.GEMM{{M: rows, N: rows, K: 1, In: rt.BF16, Out: rt.F16}}
	p.Stages[0].Arena.Workspace.Size += 2 * rows
	p.Stages[0].Arena.Size += 2 * rows
	q := onGPUs(p, images())
	free := func() (bytes []int64) {
		for _, gpu := range q.Devices.(*machine).gpus {
			bytes = append(bytes, freeMemory(t, gpu))
		}
		return bytes
	}
	if _, err := q.Devices.Open(&rt.Team{Launch: launch.Alone(dp)}); err != nil {
		t.Fatal(err)
	}
	want := free()
	if _, err := train(t, q); err == nil || !strings.Contains(err.Error(), "cuMemAlloc") {
		t.Fatalf("%v, want an error of cuMemAlloc", err)
	}
	if got := free(); !slices.Equal(got, want) {
		t.Errorf("%d bytes are free after the run, %d before it", got, want)
	}
}

func freeMemory(t *testing.T, gpu cuda.Device) int64 {
	t.Helper()
	c, err := gpu.Open()
	if err != nil {
		t.Fatal(err)
	}
	unbind, err := c.Bind()
	if err != nil {
		t.Fatal(err)
	}
	free, err := c.Free()
	if err != nil {
		t.Fatal(err)
	}
	unbind()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return free
}
