//go:build cuda && linux

package emulated

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/num"
)

func float(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }

// stored converts numbers to the bytes of a type.
func stored(v cuda.Value, x []float64) (b []byte) {
	for _, x := range x {
		switch v {
		case cuda.ValueFloat64:
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(x))
		case cuda.ValueFloat32:
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case cuda.ValueBFloat16:
			b = binary.NativeEndian.AppendUint16(b, num.ToBF16(float32(x)).Bits)
		case cuda.ValueFloat16:
			b = binary.NativeEndian.AppendUint16(b, num.ToF16(float32(x)).Bits)
		}
	}
	return b
}

var widths = map[cuda.Value]int{cuda.ValueFloat64: 8, cuda.ValueFloat32: 4, cuda.ValueBFloat16: 2, cuda.ValueFloat16: 2}

// GEMMs of every type, with and without transposes, in batches and accumulating, equal a loop. The operands
// are small integers, so that nothing is rounded.
func TestGEMMs(t *testing.T) {
	const m, n, k = 5, 7, 9
	for in := range widths {
		for bits := range 16 {
			ta, tb, batch, beta := bits&1 != 0, bits&2 != 0, 1+bits>>2&1, float64(bits>>3&1)
			t.Run(fmt.Sprint(in, ta, tb, batch, beta), func(t *testing.T) {
				g := machine(t, 0)
				s := g.stream()
				values := func(n int) (v []float64) {
					for i := range n {
						v = append(v, float64(i*i%7-3))
					}
					return v
				}
				a, b, d := values(batch*m*k), values(batch*k*n), values(batch*m*n)
				load := func(x []float64) cuda.Memory {
					bytes := stored(in, x)
					mem := g.memory(int64(len(bytes)))
					copy(g.pinned.Slice(), bytes)
					try(s.Upload(mem, g.pinned.At(0, mem.Bytes)), s.Synchronize())
					return mem
				}
				ma, mb, md := load(a), load(b), load(d)
				products := need(need(cuda.OpenBLAS()).NewGEMMs())
				p := need(products.Prepare(cuda.GEMM{Batch: batch, M: m, N: n, K: k, TransposeA: ta, TransposeB: tb,
					In: in, Out: in}, 1<<16))
				try(s.GEMM(p, 1, beta, cuda.InPlace(md.Pointer, ma.Pointer, mb.Pointer), g.memory(1<<16)))
				try(s.Download(g.pinned.At(0, md.Bytes), md), s.Synchronize())
				want := make([]float64, len(d))
				at := func(x []float64, batch, rows, cols, i, j int, transposed bool) float64 {
					if transposed {
						return x[batch*rows*cols+j*rows+i]
					}
					return x[batch*rows*cols+i*cols+j]
				}
				for i := range want {
					h, r, c := i/(m*n), i/n%m, i%n
					want[i] = beta * d[i]
					for l := range k {
						want[i] += at(a, h, m, k, r, l, ta) * at(b, h, k, n, l, c, tb)
					}
				}
				if got, want := string(g.pinned.Slice()[:md.Bytes]), string(stored(in, want)); got != want {
					t.Errorf("differs from the reference loop")
				}
				try(p.Close(), products.Close())
			})
		}
	}
}

// Ranks that call collectives of two communicators in different orders on one stream end the process with a
// report. So do ranks that disagree on a collective. A kernel that writes outside its memory fails, and one that is
// launched early and reads before it waits for the previous kernel, or does not wait.
func TestFaults(t *testing.T) {
	for name, want := range map[string]string{"order": "a deadlock", "differ": "ranks differ",
		"freed": "is not allocated memory",
		"alone": "which has not called it",
		"hasty": "accesses memory before it waits for the previous kernel",
		"add":   "does not wait for the previous kernel"} {
		cmd := exec.Command(os.Args[0], "-test.run", "TestFaulty$")
		cmd.Env = append(os.Environ(), "PLANC_EMULATED_FAULT="+name, "PLANC_EMULATED_PATIENCE=1", "PLANC_EMULATED_LOG=")
		machine(t, 0)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestFaulty is the program that TestFaults runs.
func TestFaulty(t *testing.T) {
	switch os.Getenv("PLANC_EMULATED_FAULT") {
	case "order":
		ranks(t, 2, func(g *gpu, c *cuda.Comm) {
			s, x := g.stream(), g.memory(256)
			d := need(c.Split(t.Context(), 0, 0, 0))
			both := []*cuda.Comm{c, d}
			for i := range both {
				try(both[(i+c.Rank)%2].AllReduce(s, x.Pointer, x.Pointer, 1, cuda.Float32, cuda.Sum))
			}
			try(s.Synchronize())
		})
	case "differ":
		ranks(t, 2, func(g *gpu, c *cuda.Comm) {
			s, x := g.stream(), g.memory(256)
			try(c.AllReduce(s, x.Pointer, x.Pointer, 1+c.Rank, cuda.Float32, cuda.Sum), s.Synchronize())
		})
	case "alone":
		ranks(t, 2, func(g *gpu, c *cuda.Comm) {
			s, x := g.stream(), g.memory(256)
			if c.Rank == 0 {
				try(c.AllReduce(s, x.Pointer, x.Pointer, 1, cuda.Float32, cuda.Sum))
			}
			try(s.Synchronize())
		})
	case "freed":
		g := machine(t, 0)
		s, x := g.stream(), need(cuda.Alloc(256))
		y := g.memory(256)
		try(x.Free(), g.plus(s, y, x, 1), s.Synchronize())
	case "hasty", "add":
		g := machine(t, 0)
		s, x := g.stream(), g.memory(256)
		s.EarlyLaunch = true
		try(s.Fill(x, 0), launch(s, need(g.module.Kernel("twice")), x))
		if os.Getenv("PLANC_EMULATED_FAULT") == "add" {
			try(g.plus(s, x, x, 1))
		} else {
			try(launch(s, need(g.module.Kernel("hasty")), x))
		}
		try(s.Synchronize())
	default:
		t.Skip("TestFaults runs it")
	}
}
