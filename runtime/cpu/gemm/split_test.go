package gemm

import (
	"math"
	"math/rand"
	"testing"
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

func onTiles(t *testing.T) {
	t.Helper()
	if engine32 == nil || engine32.split == nil {
		t.Skip("no tiles")
	}
}

// anyFloat returns a float32 with any exponent and few or many mantissa bits.
func anyFloat(r *rand.Rand) float32 {
	v := math.Float32frombits(r.Uint32())
	if r.Intn(4) == 0 {
		v = math.Float32frombits(r.Uint32() &^ (1<<(8+r.Intn(16)) - 1))
	}
	return v
}

// The three parts of a number are bfloat16s whose sum is the number, the first two rounded to nearest. The
// first number of a pair is in the lower half. Numbers that are not finite or round to infinity are
// reported, and no others.
func TestSplitRows(t *testing.T) {
	onTiles(t)
	const rows, count, ld = 3, 2, 70
	r := rand.New(rand.NewSource(1))
	src, dst := make([]float32, rows*ld), make([]uint16, 3*count*512)
	for range 3000 {
		bad := false
		for i := range src {
			src[i] = anyFloat(r)
			if r.Intn(60) > 0 {
				for !splitable(src[i]) {
					src[i] = anyFloat(r)
				}
			}
		}
		for i := range rows {
			for j := range 32 * count {
				bad = bad || !splitable(src[i*ld+j])
			}
		}
		exact := engine32.split((*byte)(unsafe.Pointer(&dst[0])), byteOf(src, 0), 4*ld, 64, 128, 3072, 0, rows,
			count, 0xffff)
		if (exact != 0) != bad {
			t.Fatalf("reported %v, want %v: %v", exact != 0, bad, src)
		}
		for i := range rows {
			for j := range 32 * count {
				v, at := src[i*ld+j], j/32*1536+i*32+j%16*2+j%32/16
				var parts [3]float32
				for q := range parts {
					parts[q] = math.Float32frombits(uint32(dst[at+q*512]) << 16)
				}
				if want := partsOf(v); splitable(v) && parts != want {
					t.Fatalf("the parts of %x are %x, want %x", v, parts, want)
				}
			}
		}
	}
}

func splitable(v float32) bool { return math.Abs(float64(v)) < 0x1.ffp127 }

// partsOf computes a number's parts in float64. Their sum is the number, up to bits below the range of
// bfloat16.
func partsOf(v float32) (parts [3]float32) {
	rest := float64(v)
	for q := range parts {
		parts[q] = float32(rest)
		if q < 2 {
			parts[q] = math.Float32frombits((math.Float32bits(parts[q]) + 0x8000) &^ 0xffff)
		}
		rest -= float64(parts[q])
	}
	if splitable(v) && (rest != 0 || math.Float32bits(parts[2])&0xffff != 0 &&
		math.Abs(float64(parts[2])) >= 0x1p-126) {
		panic("parts are not a number's")
	}
	parts[2] = math.Float32frombits(math.Float32bits(parts[2]) &^ 0xffff)
	return parts
}

// Matmuls on tiles are as exact as multiply-adds: for the same operands their error is no larger, whatever
// the magnitudes.
func TestSplitExact(t *testing.T) {
	onTiles(t)
	defer Use(engineISA)
	for _, k := range []int{33, 64, 200, 768, 2000} {
		const m, n = 64, 48
		r := rand.New(rand.NewSource(int64(k)))
		for _, spread := range []int{0, 4, 20} {
			number := func() float32 {
				return float32(math.Ldexp(2*r.Float64()-1, r.Intn(spread+1)-spread/2))
			}
			a, b := make([]float32, m*k), make([]float32, k*n)
			for i := range a {
				a[i] = number()
			}
			for i := range b {
				b[i] = number()
			}
			size := make([]float64, m*n)
			want := make([]float64, m*n)
			for i := range m {
				for j := range n {
					for p := range k {
						x := float64(a[i*k+p]) * float64(b[p*n+j])
						want[i*n+j] += x
						size[i*n+j] += math.Abs(x)
					}
				}
			}
			var rms [2]float64
			for x, isa := range []asm.ISA{asm.AVX512, asm.AMX} {
				Use(isa)
				c := make([]float32, m*n)
				MatMul[float32](c, a, b, m, n, k, false, false, false)
				for i, v := range c {
					e := (float64(v) - want[i]) / size[i]
					rms[x] += e * e
					if math.Abs(e) > 0x1p-20 {
						t.Fatalf("%v, %d terms: element %d is %v, want %v of magnitudes %v", isa, k, i, v,
							want[i], size[i])
					}
				}
				rms[x] = math.Sqrt(rms[x] / m / n)
			}
			t.Logf("%d terms over 2^%d: error of multiply-adds %.2g, of tiles %.2g of the sum of magnitudes", k,
				spread, rms[0], rms[1])
			if rms[1] > rms[0] {
				t.Errorf("%d terms over 2^%d: error of multiply-adds %.3g, of tiles %.3g of the sum of magnitudes", k,
					spread, rms[0], rms[1])
			}
		}
	}
}

// Numbers that tiles cannot multiply change no bit of other rows and columns, and their own results follow
// IEEE 754.
func TestSplitMarked(t *testing.T) {
	onTiles(t)
	const m, n, k = 70, 150, 600
	for bits := range 8 {
		ta, tb, acc := bits&1 > 0, bits&2 > 0, bits&4 > 0
		a, b, before := draw[float32](1, m*k), draw[float32](2, k*n), draw[float32](3, m*n)
		at := func(i, p int) *float32 { return &a[either(ta, p*m+i, i*k+p)] }
		bt := func(p, j int) *float32 { return &b[either(tb, j*k+p, p*n+j)] }
		for p := range k {
			*bt(p, 77), *at(3, p) = 0x1p-100, 0x1p-60 // keeps sums of huge numbers finite
		}
		mul := MatMul[float32]
		clean := start32(before)
		mul(clean, a, b, m, n, k, ta, tb, acc)
		*at(40, 599), *at(41, 0), *at(41, 1), *at(66, 300) = float32(math.Inf(-1)), float32(math.Inf(1)),
			float32(math.Inf(1)), float32(math.NaN())
		*at(3, 555), *bt(10, 77), *bt(20, 149) = -math.MaxFloat32, math.MaxFloat32, float32(math.Inf(1))
		rows, cols := map[int]bool{40: true, 41: true, 66: true, 3: true}, map[int]bool{77: true, 149: true}
		got := start32(before)
		mul(got, a, b, m, n, k, ta, tb, acc)
		want := start(before, acc)
		naiveMatMul(want, a, b, m, n, k, ta, tb)
		for i, v := range got {
			if !rows[i/n] && !cols[i%n] {
				if v != clean[i] {
					t.Fatalf("%v %v %v: element %d,%d is %v, without the others' numbers %v", ta, tb, acc, i/n, i%n,
						v, clean[i])
				}
				continue
			}
			w := float64(float32(want[i]))
			same := v == float32(w) || math.IsNaN(w) && v != v || math.Abs(float64(v)-w) <= 1e-5*math.Abs(w)+1e-2
			if !same {
				t.Fatalf("%v %v %v: element %d,%d is %v, want %v", ta, tb, acc, i/n, i%n, v, want[i])
			}
		}
	}
}

func start32(x []float32) []float32 { return append([]float32(nil), x...) }

func either(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

// Numbers near the least normal one lose what tiles treat as 0, at most 2^-126 per operand and sum.
func TestSplitSmall(t *testing.T) {
	onTiles(t)
	const m, n, k = 32, 32, 64
	r := rand.New(rand.NewSource(1))
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range a {
		a[i], b[i] = float32(math.Ldexp(2*r.Float64()-1, -100-r.Intn(45))), float32(math.Ldexp(2*r.Float64()-1, 90))
	}
	c, want := make([]float32, m*n), make([]float64, m*n)
	MatMul[float32](c, a, b, m, n, k, false, false, false)
	naiveMatMul(want, a, b, m, n, k, false, false)
	for i, v := range c {
		if limit := k * (0x1p-126*0x1p90*1.1 + 0x1p-10*0x1p-22); math.Abs(float64(v)-want[i]) > limit {
			t.Fatalf("element %d is %v, want %v", i, v, want[i])
		}
	}
}

// Shares of rows and columns cover a matmul, and there are as many as threads if there are enough panels.
func TestSplitGrid(t *testing.T) {
	for _, z := range []struct{ m, n, threads, rows, cols int }{
		{2048, 384, 2, 2, 1}, {384, 2048, 2, 1, 2}, {2048, 2048, 4, 2, 2}, {2048, 2048, 16, 4, 4}, {32, 32, 8, 1, 1},
		{64, 32, 8, 2, 1}, {768, 128, 3, 3, 1},
	} {
		g := problem[float32]{e: &engine[float32]{rows: 32, cols: 32}, m: z.m, n: z.n}
		if rows, cols := g.grid(z.threads); rows != z.rows || cols != z.cols {
			t.Errorf("%d×%d on %d threads: %d by %d, want %d by %d", z.m, z.n, z.threads, rows, cols, z.rows, z.cols)
		}
	}
}

// A block of op(a) and its part of op(b) fit a second-level cache of 2 MB, and there are marks for all
// rows.
func TestSplitBlocks(t *testing.T) {
	const rows = 2 * splitTile
	for steps := 1; steps <= splitSteps; steps++ {
		tile := 4 * tileApart(steps)
		for panels := 1; panels < 300; panels++ {
			blocks := splitBlocks(panels, rows, tile)
			each := (panels + blocks - 1) / blocks
			cols := splitCols
			if blocks == 1 {
				cols = splitOnce
			}
			if a, b := each*rows/splitTile*tile, cols/splitTile*tile; a > splitWhole || blocks > 1 && a > splitBytes ||
				each*rows > splitRows || a+b > 2250<<10 {
				t.Fatalf("%d panels of %d steps are %d blocks: %d KB and %d KB, %d rows", panels, steps, blocks,
					a>>10, b>>10, each*rows)
			}
		}
	}
	if blocks := splitBlocks(8, rows, 4*tileApart(16)); blocks != 1 {
		t.Errorf("256 rows of 512 terms are %d blocks", blocks)
	}
}
