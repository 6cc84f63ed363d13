package cpu

import (
	"math"
	"testing"
)

var flips = []bool{false, true}

func TestMatMul(t *testing.T) { both(t, testMatMul[float32], testMatMul[float64]) }

func testMatMul[F Float](t *testing.T, tol float64) {
	sizes := [][3]int{{1, 1, 1}, {1, 7, 5}, {2, 3, 4}, {5, 1, 13}, {7, 11, 1}, {3, 4, 0}, {0, 3, 4}, {3, 0, 4},
		{13, 17, 19}, {65, 5, 257}, {67, 193, 31}, {31, 197, 259}}
	for _, z := range sizes {
		m, n, k := z[0], z[1], z[2]
		a, b, c := draw[F](1, m*k), draw[F](2, k*n), draw[F](3, m*n)
		for _, ta := range flips {
			for _, tb := range flips {
				for _, acc := range accs {
					got := append([]F(nil), c...)
					Table[F]().MatMul(got, a, b, m, n, k, ta, tb, acc)
					want := start(c, acc)
					naiveMatMul(want, a, b, m, n, k, ta, tb)
					near(t, name("matmul ", z, ta, tb, acc), got, want, tol)
				}
			}
		}
	}
}

func TestMatMulOn(t *testing.T) { both(t, testMatMulOn[float32], testMatMulOn[float64]) }

// MatMulOn with several rows or one row, on one and two threads. The sizes have several blocks of terms,
// rows and columns, and none.
func testMatMulOn[F Float](t *testing.T, tol float64) {
	defer Threads(1, 1)
	for _, z := range [][3]int{{1, 1, 1}, {5, 1, 13}, {3, 4, 0}, {0, 3, 4}, {67, 193, 31}, {31, 197, 1100},
		{300, 70, 40}, {130, 600, 64}} {
		m, n, k := z[0], z[1], z[2]
		a, b, rows, row := draw[F](1, m*k), draw[F](2, k*n), draw[F](3, m*n), draw[F](4, n)
		for i := range 8 {
			ta, tb, one := i&1 > 0, i&2 > 0, i&4 > 0
			from, want := rows, start(rows, true)
			if one {
				from = row
				for i := range want {
					want[i] = float64(row[i%n])
				}
			}
			naiveMatMul(want, a, b, m, n, k, ta, tb)
			for threads := 1; threads < 3; threads++ {
				Threads(1, threads)
				got := make([]F, m*n)
				Table[F]().MatMulOn(got, from, a, b, m, n, k, ta, tb)
				// sums have a magnitude of √k
				near(t, name("matmul on ", z, ta, tb, one, threads), got, want, tol*math.Sqrt(float64(k+1)))
			}
		}
	}
}

func naiveMatMul[F Float](c []float64, a, b []F, m, n, k int, ta, tb bool) {
	rowA, nextA, colB, nextB := k, 1, 1, n
	if ta {
		rowA, nextA = 1, m
	}
	if tb {
		colB, nextB = k, 1
	}
	for i := range m {
		for j := range n {
			sum, x, y := c[i*n+j], i*rowA, j*colB
			for range k {
				sum += float64(a[x]) * float64(b[y])
				x, y = x+nextA, y+nextB
			}
			c[i*n+j] = sum
		}
	}
}

// The bits of an element do not depend on other elements: the matmul of some rows and columns equals that
// part of the whole matmul.
func TestMatMulElementAlone(t *testing.T) { each(t, testMatMulElementAlone) }

func testMatMulElementAlone(t *testing.T) {
	const m, n, k = 71, 203, 301
	a, bt := draw[float32](1, m*k), draw[float32](2, n*k)
	whole := make([]float32, m*n)
	mul := Table[float32]().MatMul
	mul(whole, a, bt, m, n, k, false, true, false)
	for _, r := range [][4]int{{0, 1, 0, 1}, {70, 71, 202, 203}, {1, 4, 1, 6}, {33, 66, 100, 201}, {0, 71, 191, 194}} {
		i0, i1, j0, j1 := r[0], r[1], r[2], r[3]
		part := make([]float32, (i1-i0)*(j1-j0))
		mul(part, a[i0*k:i1*k], bt[j0*k:j1*k], i1-i0, j1-j0, k, false, true, false)
		for i := i0; i < i1; i++ {
			for j := j0; j < j1; j++ {
				if got := part[(i-i0)*(j1-j0)+j-j0]; got != whole[i*n+j] {
					t.Fatalf("part %v: element %d,%d is %v, in the whole %v", r, i, j, got, whole[i*n+j])
				}
			}
		}
	}
	// They do not depend on transposition either.
	at, b, c := make([]float32, m*k), make([]float32, n*k), make([]float32, m*n)
	transpose(at, a, m, k)
	transpose(b, bt, n, k)
	mul(c, at, b, m, n, k, true, false, false)
	for i := range c {
		if c[i] != whole[i] {
			t.Fatalf("transposed: element %d is %v, want %v", i, c[i], whole[i])
		}
	}
}

func transpose[F Float](y, x []F, rows, cols int) {
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
}

func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget")
	}
	a, b, c := draw[float32](1, 64*64), draw[float32](2, 64*64), make([]float32, 64*64)
	k := Table[float32]()
	if n := testing.AllocsPerRun(20, func() { k.MatMul(c, a, b, 64, 64, 64, true, true, true) }); n != 0 {
		t.Errorf("MatMul allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		k.MatMulThen(c, nil, b, a, a, b, DoGeluGrad, 64, 64, 64, false, true)
	}); n != 0 {
		t.Errorf("MatMulThen allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() { k.MatMulEach(c, a, b, 4, 32, 32, 32, false, true, false) }); n != 0 {
		t.Errorf("MatMulEach allocates %v times", n)
	}
	s := AttentionShape{Batch: 1, Seq: 64, KSeq: 64, Heads: 2, Group: 1, Dim: 32, VDim: 32, Scale: 0.1, Mask: causal}
	lse, dq, dk, dv := make([]float32, 128), make([]float32, 64*64), make([]float32, 64*64), make([]float32, 64*64)
	if n := testing.AllocsPerRun(20, func() { k.Attention(c, lse, a, b, a, s) }); n != 0 {
		t.Errorf("Attention allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() { k.AttentionGrad(dq, dk, dv, a, a, b, a, c, lse, s) }); n != 0 {
		t.Errorf("AttentionGrad allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		k.RoPE(c, a, 1, 64, 2, 32, 32, Where{}, 1e4, RopeScale{}, false)
	}); n != 0 {
		t.Errorf("RoPE allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() { k.LayerNormDGain(dq[:64], a, b, 64, 64, 1e-5, true) }); n != 0 {
		t.Errorf("LayerNormDGain allocates %v times", n)
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, z := range []struct {
		m, n, k int
		ta, tb  bool
	}{{1024, 256, 64, false, false}, {1024, 64, 256, false, true}, {64, 256, 1024, true, false},
		{768, 768, 768, false, false}} {
		b.Run(name(z.m, "x", z.n, "x", z.k), func(b *testing.B) {
			x, y, c := draw[float32](1, z.m*z.k), draw[float32](2, z.k*z.n), make([]float32, z.m*z.n)
			mul := Table[float32]().MatMul
			for b.Loop() {
				mul(c, x, y, z.m, z.n, z.k, z.ta, z.tb, false)
			}
			b.ReportMetric(2*float64(z.m*z.n*z.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
