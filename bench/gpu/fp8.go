//go:build cuda && linux

package main

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/runtime/num"
)

// fp8Arch is the first architecture that multiplies FP8 numbers (Ada).
const fp8Arch = 89

// fp8Codes maps the formats to their numbers in fp8.cu, their cuBLASLt types and their names.
var fp8Codes = map[num.FP8Format]struct {
	format int
	value  cuda.Value
	name   string
}{num.E4M3: {0, cuda.ValueE4M3, "e4m3"}, num.E5M2: {1, cuda.ValueE5M2, "e5m2"}}

// fp8GEMM is a GEMM of stored bf16 operands, and the format to which each operand is rounded.
type fp8GEMM struct {
	cuda.GEMM
	as [2]num.FP8Format
}

// fp8GEMMs measures FP8 GEMMs of models' layers, as gpu.MatMul8 computes them: forward, and both gradients.
func fp8GEMMs(l *lab, r *Result) error {
	if arch := 10*l.gpu.Major + l.gpu.Minor; arch < fp8Arch {
		r.State = "ok"
		r.note("skipped: %s is sm_%d, and FP8 GEMMs need sm_%d or later", l.gpu.Name, arch, fp8Arch)
		return nil
	}
	var all []FP8Measured
	const tokens = 16384
	for _, size := range [][2]int{{768, 3072}, {3072, 768}, {1600, 6400}, {2048, 5632}} {
		m, k, n := l.size(tokens), l.size(size[0]), l.size(size[1])
		for _, p := range []fp8GEMM{
			{cuda.GEMM{M: m, N: n, K: k, Out: cuda.ValueBFloat16}, [2]num.FP8Format{num.E4M3, num.E4M3}},
			{cuda.GEMM{M: m, N: k, K: n, Out: cuda.ValueBFloat16, TransposeB: true},
				[2]num.FP8Format{num.E5M2, num.E4M3}},
			{cuda.GEMM{M: k, N: n, K: m, Out: cuda.ValueFloat32, TransposeA: true},
				[2]num.FP8Format{num.E4M3, num.E5M2}},
		} {
			p.In = cuda.ValueBFloat16
			x, err := (&fp8Lab{l}).measureFP8(p)
			l.release()
			if err != nil {
				x.Why = err.Error()
			}
			all = append(all, x)
		}
	}
	tabulateFP8(r, all)
	return nil
}

// fp8Lab measures GEMMs of operands that are rounded to FP8.
type fp8Lab struct{ *lab }

// measureFP8 times a GEMM, and compares one with as many terms.
func (l *fp8Lab) measureFP8(p fp8GEMM) (x FP8Measured, err error) {
	x = newFP8Measured(p)
	if err := l.timeFP8(p, &x); err != nil {
		return x, err
	}
	l.release()
	p.M, p.N = min(p.M, 1024), min(p.N, 1024)
	e, err := l.rounded(p)
	if err != nil {
		return x, err
	}
	if err := e.passes(); err != nil {
		return x, err
	}
	if err := e.multiply(); err != nil {
		return x, err
	}
	out := outOf(p.GEMM)
	b, err := l.get(e.result, p.M*p.N*trial.ElemBytes(out))
	if err != nil {
		return x, err
	}
	got := trial.Read(out, b)
	for _, c := range []struct {
		to *float64
		as [2]num.FP8Format
	}{{&x.Error, p.as}, {&x.Unrounded, [2]num.FP8Format{}}} {
		l.release()
		want, err := l.exactly(p.GEMM, c.as)
		if err != nil {
			return x, fmt.Errorf("in f64: %w", err)
		}
		*c.to = trial.RelativeError(got, want)
	}
	return x, nil
}

// timeFP8 times a GEMM without the rounding passes, with them, and in bf16.
func (l *fp8Lab) timeFP8(p fp8GEMM, x *FP8Measured) error {
	e, err := l.rounded(p)
	if err != nil {
		return err
	}
	if err := e.passes(); err != nil {
		return err
	}
	x.Seconds, err = l.time(e.multiply)
	if err != nil {
		return err
	}
	x.WithRounding, err = l.time(func() error {
		if err := e.passes(); err != nil {
			return err
		}
		return e.multiply()
	})
	if err != nil {
		return err
	}
	l.release()
	run, _, err := l.multiplier(p.GEMM, "bf16", outOf(p.GEMM))
	if err == nil {
		x.In16, err = l.time(run)
	}
	return err
}

// roundedGEMM is an FP8 GEMM that can be run. Its result is filled with NaN before.
type roundedGEMM struct {
	passes, multiply func() error
	result           cuda.Memory
}

// rounded copies random bf16 operands to the device, and everything else that gpu.MatMul8 takes.
func (l *fp8Lab) rounded(p fp8GEMM) (e roundedGEMM, err error) {
	width := (p.K + 15) &^ 15
	scales, err := l.alloc(512)
	if err != nil {
		return e, err
	}
	q := p.GEMM
	q.K, q.TransposeA, q.TransposeB = width, false, true
	q.In, q.InB, q.ScaleA, q.ScaleB = fp8Codes[p.as[0]].value, fp8Codes[p.as[1]].value, scales.Pointer,
		scales.Pointer+256
	way, err := l.blas.Prepare(q, workspace)
	if err != nil {
		return e, err
	}
	e.result, err = l.alloc(int64(p.M * p.N * trial.ElemBytes(outOf(p.GEMM))))
	if err == nil {
		err = l.stream.Fill(e.result, 0xff)
	}
	if err != nil {
		return e, err
	}
	var codes [2]cuda.Memory
	var passes [2]func() error
	for i, rows := range []int{p.M, p.N} {
		across := i == 0 && p.TransposeA || i == 1 && !p.TransposeB
		c := fp8Copy{seed: i, rows: rows, cols: p.K, width: width, across: across,
			format: fp8Codes[p.as[i]].format, scale: scales.Pointer + cuda.Pointer(256*i)}
		codes[i], passes[i], err = l.fp8Copy(c)
		if err != nil {
			return e, err
		}
	}
	e.passes = func() error {
		if err := passes[0](); err != nil {
			return err
		}
		return passes[1]()
	}
	e.multiply = func() error {
		return l.stream.GEMM(way, 1, 0, cuda.InPlace(e.result.Pointer, codes[0].Pointer, codes[1].Pointer), l.scratch)
	}
	return e, nil
}

// fp8Copy is an operand with rows of cols numbers, transposed in memory or not, and its codes with width bytes per
// row.
type fp8Copy struct {
	seed, rows, cols, width, format int
	across                          bool
	scale                           cuda.Pointer
}

// fp8Copy copies an operand to the device; run computes its codes.
func (l *fp8Lab) fp8Copy(c fp8Copy) (codes cuda.Memory, run func() error, err error) {
	n := c.rows * c.cols
	x, err := l.put(trial.Random("bf16", n, c.seed))
	if err != nil {
		return codes, nil, err
	}
	part, err := l.alloc(int64(4 * kernels.Blocks(n)))
	if err == nil {
		codes, err = l.alloc(int64(c.rows * c.width))
	}
	if err != nil {
		return codes, nil, err
	}
	across := int32(0)
	if c.across {
		across = 1
	}
	largest, err := l.launch("fp8_absmax", 1, n,
		new(cuda.Args).Pointer(part.Pointer).Pointer(x.Pointer).Uint64(uint64(n)))
	if err != nil {
		return codes, nil, err
	}
	args := new(cuda.Args).Pointer(codes.Pointer).Pointer(x.Pointer).Pointer(part.Pointer).Pointer(c.scale).Int32(
		int32(kernels.Blocks(n))).Int32(1)
	args.Int32(int32(c.rows)).Int32(int32(c.cols)).Int32(int32(c.width)).Int32(across).Int32(int32(c.format))
	round, err := l.launch("fp8_quantize", c.rows, c.width, args)
	return codes, func() error {
		if err := largest(); err != nil {
			return err
		}
		return round()
	}, err
}

// launch returns a launch of a kernel in bf16.
func (l *lab) launch(name string, rows, cols int, args *cuda.Args) (func() error, error) {
	f, k, err := l.kernel(name, "bf16")
	if err != nil {
		return nil, err
	}
	at := k.Launch(rows, cols)
	return func() error { return l.stream.Launch(f, cuda.Shape{Grid: at.Grid, Block: at.Block}, args) }, nil
}

// exactly returns the GEMM in f64 of the numbers to which package num rounds the operands; operands without a format
// are not rounded.
func (l *fp8Lab) exactly(p cuda.GEMM, as [2]num.FP8Format) ([]float64, error) {
	p.In, p.Out = cuda.ValueFloat64, cuda.ValueFloat64
	var operands [2][]byte
	for i, n := range []int{p.M * p.K, p.K * p.N} {
		v := trial.Numbers(min(n, trial.Period), i)
		if as[i] != (num.FP8Format{}) {
			roundFP8(v, as[i])
		}
		operands[i] = trial.Repeated(trial.Stored("f64", v), 8*n)
	}
	run, d, err := l.multiplierOf(p, operands, "f64")
	if err == nil {
		err = run()
	}
	if err != nil {
		return nil, err
	}
	b, err := l.get(d, 8*p.M*p.N)
	return trial.Read("f64", b), err
}

// roundFP8 rounds a tensor to a format, scaled by its largest magnitude, as cpu.MatMul8 does.
func roundFP8(v []float64, as num.FP8Format) {
	largest := 0.0
	for _, x := range v {
		largest = max(largest, math.Abs(x))
	}
	scale := as.Scale(largest)
	for i, x := range v {
		v[i] = as.Round(x*scale) / scale
	}
}
