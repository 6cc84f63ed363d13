//go:build cuda && linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/planc-dev/planc/cuda"
)

// describeGPU reports the GPU and libraries that planc sees.
func describeGPU(l *lab, r *Result) error {
	r.note("planc sees %s of compute capability %d.%d, cuBLASLt %s", l.gpu.Name, l.gpu.Major, l.gpu.Minor, l.version)
	r.note("%s", l.attentionBackend())
	if n, err := cuda.OpenNCCL(); err == nil {
		r.note("NCCL %s at %s", n.Version, n.Path)
	} else {
		r.note("NCCL: %v", err)
	}
	return nil
}

// tryNCCL checks that collectives of a communicator with one rank return their input.
func tryNCCL(l *lab, r *Result) error {
	n, err := cuda.OpenNCCL()
	if err != nil {
		return err
	}
	id, err := n.NewID()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	c, err := n.Join(ctx, id, 0, 1)
	if err != nil {
		return err
	}
	const count = 1 << 16
	want := random("f32", count, 1)
	from, err := l.put(want)
	if err != nil {
		return err
	}
	for name, f := range map[string]func(to cuda.Pointer) error{
		"AllReduce": func(to cuda.Pointer) error {
			return c.AllReduce(l.stream, to, from.Pointer, count, cuda.Float32, cuda.Sum)
		},
		"ReduceScatter": func(to cuda.Pointer) error {
			return c.ReduceScatter(l.stream, to, from.Pointer, count, cuda.Float32, cuda.Sum)
		},
		"AllGather": func(to cuda.Pointer) error {
			return c.AllGather(l.stream, to, from.Pointer, count, cuda.Float32)
		},
		"Broadcast": func(to cuda.Pointer) error {
			return c.Broadcast(l.stream, to, from.Pointer, count, cuda.Float32, 0)
		},
	} {
		to, err := l.put(make([]byte, len(want)))
		if err == nil {
			err = f(to.Pointer)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		got, err := l.get(to, len(want))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if string(got) != string(want) {
			return fmt.Errorf("NCCL's %s with one rank must return its input, but does not", name)
		}
	}
	r.note("NCCL %s: all-reduce, reduce-scatter, all-gather and broadcast with one rank return their %d numbers",
		n.Version, count)
	return c.Close(ctx)
}

// ceilings measures the best rates of the device: a copy, and a large GEMM of random numbers.
func ceilings(l *lab, r *Result) error {
	bytes, took, err := l.copied()
	if err != nil {
		return err
	}
	n := l.size(8192)
	p, err := l.gemm(cuda.GEMM{M: n, N: n, K: n, In: cuda.ValueBFloat16, Out: cuda.ValueBFloat16}, false)
	tabulateKernels(r, []Measured{{Name: "copy", Types: "bytes", Size: fmt.Sprint(bytes), Error: -1,
		Bytes: 2 * float64(bytes), Seconds: took}, p})
	return err
}

// copied returns the bytes and seconds of a copy.
func (l *lab) copied() (bytes int64, took float64, err error) {
	bytes = 4 << 30
	if l.tiny {
		bytes = 1 << 12
	}
	defer l.release()
	var at [2]cuda.Memory
	for i := range at {
		at[i], err = cuda.Alloc(bytes)
		if err != nil {
			return bytes, 0, err
		}
		l.allocated = append(l.allocated, at[i])
	}
	to, from := at[0], at[1]
	if err := l.stream.Fill(from, 7); err != nil {
		return bytes, 0, err
	}
	took, err = l.time(func() error { return l.stream.Copy(to, from) })
	return bytes, took, err
}

// bandwidth returns the bytes per second that a copy reads and writes; 0 on a machine without time.
func (l *lab) bandwidth() (float64, error) {
	bytes, took, err := l.copied()
	if err != nil || took == 0 {
		return 0, err
	}
	return 2 * float64(bytes) / took, nil
}

// size returns a dim of a measurement, or a small one with -tiny.
func (l *lab) size(n int) int {
	if l.tiny {
		return min(n, 48)
	}
	return n
}

// gemms measures the GEMMs of a GPT-2 block and a Llama block on 16384 tokens: forward, and the gradients of
// inputs and of weights, which are stored in f32.
func gemms(l *lab, r *Result) error {
	var all []Measured
	const tokens = 16384
	for _, size := range [][2]int{{768, 2304}, {768, 3072}, {3072, 768}, {768, 50257}, {1600, 6400}, {2048, 5632}} {
		k, n := l.size(size[0]), l.size(size[1])
		m := l.size(tokens)
		for _, p := range []cuda.GEMM{
			{M: m, N: n, K: k},
			{M: m, N: k, K: n, TransposeB: true},
			{M: k, N: n, K: m, TransposeA: true, Out: cuda.ValueFloat32},
		} {
			p.In = cuda.ValueBFloat16
			if !p.TransposeA {
				p.Out = cuda.ValueBFloat16
			}
			x, err := l.gemm(p, true)
			if err != nil {
				x.Why = err.Error()
			}
			all = append(all, x)
		}
	}
	tabulateKernels(r, all)
	return nil
}

// gemm measures a GEMM, and compares one with as many terms with the f64 GEMM of the same numbers. The bound of
// f32 sums is half a unit in the last place for each truncation by a tensor core, which happens after 16 terms.
func (l *lab) gemm(p cuda.GEMM, compare bool) (x Measured, err error) {
	defer l.release()
	x = Measured{Name: "GEMM", Types: "bf16", Size: fmt.Sprintf("%d×%d×%d%s%s", p.M, p.N, p.K, flagged(p.TransposeA,
		" aᵀ"), flagged(p.TransposeB, " bᵀ")), Error: -1, Bound: 6e-3}
	out := "bf16"
	if p.Out == cuda.ValueFloat32 {
		out, x.Types, x.Bound = "f32", "bf16 to f32", max(1e-5, float64(p.K)/16*0x1p-24)
	}
	x.Flops = 2 * float64(p.M) * float64(p.N) * float64(p.K)
	x.Bytes = 2*float64(p.K)*float64(p.M+p.N) + float64(p.M*p.N*elemBytes(out))
	run, _, err := l.multiplier(p, "bf16", out)
	if err != nil {
		return x, err
	}
	x.Seconds, err = l.time(run)
	if err != nil || !compare {
		return x, err
	}
	l.release()
	p.M, p.N = min(p.M, 1024), min(p.N, 1024)
	got, err := l.multiplied(p, "bf16", out)
	if err != nil {
		return x, err
	}
	p.In, p.Out = cuda.ValueFloat64, cuda.ValueFloat64
	want, err := l.multiplied(p, "f64", "f64")
	if err != nil {
		return x, fmt.Errorf("in f64: %w", err)
	}
	x.Error = off(got, want)
	return x, nil
}

// multiplied returns a GEMM's result.
func (l *lab) multiplied(p cuda.GEMM, in, out string) ([]float64, error) {
	run, d, err := l.multiplier(p, in, out)
	if err == nil {
		err = run()
	}
	if err != nil {
		return nil, err
	}
	b, err := l.get(d, p.M*p.N*elemBytes(out))
	return read(out, b), err
}

// multiplier copies operands to the device; run launches the GEMM.
func (l *lab) multiplier(p cuda.GEMM, in, out string) (run func() error, d cuda.Memory, err error) {
	return l.multiplierOf(p, [2][]byte{random(in, p.M*p.K, 0), random(in, p.K*p.N, 1)}, out)
}

// multiplierOf is multiplier for given operands.
func (l *lab) multiplierOf(p cuda.GEMM, operands [2][]byte, out string) (run func() error, d cuda.Memory,
	err error) {
	var at [2]cuda.Memory
	for i := range at {
		at[i], err = l.put(operands[i])
		if err != nil {
			return nil, d, err
		}
	}
	d, err = cuda.Alloc(int64(p.M * p.N * elemBytes(out)))
	if err != nil {
		return nil, d, err
	}
	l.allocated = append(l.allocated, d)
	err = l.stream.Fill(d, 0xff)
	if err != nil { // NaN
		return nil, d, err
	}
	m, err := l.blas.Prepare(p, workspace)
	if err != nil {
		return nil, d, err
	}
	return func() error {
		return l.stream.GEMM(m, 1, 0, cuda.InPlace(d.Pointer, at[0].Pointer, at[1].Pointer), l.scratch)
	}, d, nil
}

func flagged(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
