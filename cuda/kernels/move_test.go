package kernels

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
)

// elemOf returns the type of a suffix.
func elemOf(name string) elem {
	return elems[slices.IndexFunc(elems, func(e elem) bool { return e.name == name })]
}

// edges are numbers at which rounding changes.
var edges = []float64{0, math.Copysign(0, -1), 1, 1 + 0x1p-8, 1 + 3*0x1p-8, 1 + 0x1p-11, 1 + 3*0x1p-11, 65504, 65519,
	65520, -65536, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-14,
	3.3895313892515355e38, 3.4e38, 1e39, 1e-45, 1e-46, math.Inf(1), math.Inf(-1), math.NaN(), 0x1.fffffp-15, 0x1p-140}

func TestCast(t *testing.T) {
	needEmulation(t)
	inEachType(t, "join", func(b bench) {
		if b.name != "f32" {
			return
		}
		for _, pair := range kernelOf("cast").Types {
			to, from, _ := strings.Cut(pair, "_")
			y, x := elemOf(to), elemOf(from)
			v := x.values(x.buffer(append(slices.Clone(edges), x.draw(301, "x")...)))
			want := make([]float64, len(v))
			for i := range v {
				want[i] = y.values(y.buffer([]float64{v[i]}))[0] // uses num.ToBF16 and num.ToF16
			}
			for _, n := range []int{len(v), 304, 3} {
				out, in := y.buffer(nans(n)), x.buffer(v[:n])
				if n == 304 {
					in.Skew = x.size
				}
				if err := b.m.Launch("cast_"+pair, emulate.Launch(flat(1, n)), out, in, int64(n)); err != nil {
					t.Fatal(err)
				}
				y.near(t, "cast_"+pair, y.values(out), want[:n], 0, 0)
				for i, w := range want[:n] { // the nearest number, not a neighbour
					if g := y.values(out)[i]; g != w && w == w {
						t.Errorf("cast_%s of %v is %v, want %v", pair, v[i], g, w)
					}
				}
			}
		}
	})
}

func TestEveryHalfIsCast(t *testing.T) {
	inEachType(t, "join", func(b bench) {
		if b.size != 2 {
			return
		}
		in := &emulate.Buffer{Bytes: make([]byte, 2<<16)}
		for i := range 1 << 16 {
			in.Bytes[2*i], in.Bytes[2*i+1] = byte(i), byte(i>>8)
		}
		want := b.values(in)
		f32 := elems[0]
		out := f32.buffer(nans(1 << 16))
		if err := b.m.Launch("cast_f32_"+b.name, emulate.Launch(flat(1, 1<<16)), out, in, int64(1<<16)); err != nil {
			t.Fatal(err)
		}
		f32.near(t, "wide", f32.values(out), want, 0, 0)
	})
}

func TestAccumulate(t *testing.T) {
	inEachType(t, "join", func(b bench) {
		if b.name != "f32" {
			return
		}
		for _, pair := range kernelOf("accumulate").Types {
			to, from, _ := strings.Cut(pair, "_")
			y, x := elemOf(to), elemOf(from)
			for _, n := range []int{5, 1000, 1003} {
				grad, more := y.draw(n, "grad"), x.draw(n, "more")
				out := y.buffer(grad)
				if err := b.m.Launch("accumulate_"+pair, emulate.Launch(flat(1, n)), out, x.buffer(more),
					int64(n)); err != nil {
					t.Fatal(err)
				}
				if pair == "bf16_bf16" {
					g, m := halves(grad), halves(more)
					runtime.Accumulate(g, m)
					for i := range grad {
						grad[i] = float64(g[i].Wide())
					}
				} else {
					for i := range grad {
						grad[i] += more[i]
						if to != "f64" {
							grad[i] = float64(float32(grad[i]))
						}
					}
					grad = y.values(y.buffer(grad))
				}
				y.near(t, "accumulate_"+pair, y.values(out), grad, 0, 0)
			}
		}
	})
}

func halves(v []float64) []num.BF16 {
	h := make([]num.BF16, len(v))
	for i := range v {
		h[i] = num.ToBF16(float32(v[i]))
	}
	return h
}

func TestJoinAndPart(t *testing.T) {
	inEachType(t, "join", func(b bench) {
		for _, s := range [][4]int{{2, 3, 5, 7}, {3, 2, 64, 16}, {1, 4, 1, 1}, {2, 1, 1040, 3}} {
			outer, times, width, more := s[0], s[1], s[2], s[3]
			rows, n := outer*times, width+more
			x, z := b.draw(rows*width, "a"), b.draw(outer*more, "b")
			want := make([]float64, rows*n)
			runtime.Concat(want, x, z, outer, times, width, more)
			y := b.buffer(nans(rows * n))
			b.run("join", rows, n, y, b.buffer(x), b.buffer(z), outer, times, width, more)
			b.near(b.T, fmt.Sprint("join", s), b.values(y), want, 0, 0)
			second := make([]float64, rows*more)
			runtime.SliceFrom(second, want, rows, n, width)
			p := b.buffer(nans(rows * more))
			b.run("part", rows, more, p, y, rows, more, n, width)
			b.near(b.T, fmt.Sprint("part", s), b.values(p), second, 0, 0)
		}
	})
}

func TestDropout(t *testing.T) {
	inEachType(t, "dropout", func(b bench) {
		for _, v := range []cpu.GlobalView{
			{N: 1, Local: [4]int{37}, Global: [4]int{100}, Offset: [4]int{40}},
			{N: 2, Local: [4]int{5, 64}, Global: [4]int{50, 128}, Offset: [4]int{3, 64}},
			{N: 3, Local: [4]int{2, 6, 8}, Global: [4]int{4, 24, 8}, Offset: [4]int{2, 3, 0}, Half: [4]int{0, 3, 0},
				Then: [4]int{0, 18, 0}},
			// beyond 2^31
			{N: 4, Local: [4]int{2, 2, 3, 5}, Global: [4]int{1 << 14, 1 << 14, 3, 10},
				Offset: [4]int{1 << 13, 5, 0, 5}},
		} {
			rows, cols := 1, v.Local[v.N-1]
			for _, n := range v.Local[:v.N-1] {
				rows *= n
			}
			const key, p = 0x123456789abcdef, 0.3
			x := b.draw(rows*cols, "x")
			want := make([]float64, len(x))
			cpu.Table[float64]().Dropout(want, x, p, key, v)
			y := b.buffer(x)
			b.run("dropout", rows, cols, y, y, ints(viewOf(v)), words(key), rng.Least(p), 1/(1-p), rows, cols)
			b.near(b.T, fmt.Sprint("dropout ", v), b.values(y), want, 2, 3)
		}
	})
}

// viewOf encodes a view for the kernel.
func viewOf(v cpu.GlobalView) []int32 {
	out := []int32{int32(v.N)}
	for _, a := range [][4]int{v.Local, v.Global, v.Offset, v.Half, v.Then} {
		for _, n := range a {
			out = append(out, int32(n))
		}
	}
	return out
}
