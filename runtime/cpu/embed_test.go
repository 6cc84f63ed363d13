package cpu

import (
	"math"
	"testing"
)

func TestEmbed(t *testing.T) { both(t, testEmbed[float32], testEmbed[float64]) }

func testEmbed[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	const lo, n, below = 3, 5, 11
	for _, z := range [][2]int{{0, 3}, {1, 1}, {37, 7}} {
		rows, cols := z[0], z[1]
		ids, table, y := drawIDs(1, rows, below), draw[F](2, (n+1)*cols), draw[F](3, rows*cols)
		want := make([]float64, rows*cols)
		for i := range want {
			if r := int(ids[i/cols]) - lo; r >= 0 && r < n {
				want[i] = float64(table[r*cols+i%cols])
			}
		}
		k.Embed(y, table, ids, cols, lo, n)
		near(t, name("embed ", z), y, want, 0)
		for _, acc := range accs {
			dtable := draw[F](4, (n+1)*cols)
			want := start(dtable, acc)
			for i, v := range y {
				if r := int(ids[i/cols]) - lo; r >= 0 && r < n {
					want[r*cols+i%cols] += float64(v)
				}
			}
			k.EmbedGrad(dtable, y, ids, cols, lo, n, acc)
			near(t, name("embed grad ", z, acc), dtable, want, tol)
			for _, but := range []int{-1, 0, lo, lo + n - 1, 10} {
				dtable := draw[F](4, (n+1)*cols)
				want := start(dtable, acc)
				for i, v := range y {
					if r := int(ids[i/cols]) - lo; r >= 0 && r < n && int(ids[i/cols]) != but {
						want[r*cols+i%cols] += float64(v)
					}
				}
				k.EmbedGradBut(dtable, y, ids, but, cols, lo, n, acc)
				near(t, name("embed grad but ", z, acc, but), dtable, want, tol)
			}
		}
	}
}

func TestLogSumExp(t *testing.T) { both(t, testLogSumExp[float32], testLogSumExp[float64]) }

func testLogSumExp[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for _, z := range [][3]int{{0, 3, 3}, {1, 1, 1}, {3, 7, 5}, {2, 5, 0}, {5, 131, 127}} {
		rows, cols, valid := z[0], z[1], z[2]
		x, dl, l, dx := draw[F](1, rows*cols), draw[F](2, rows), make([]F, rows), draw[F](3, rows*cols)
		for i := range x {
			x[i] = x[i]*10 + 700 // overflows without subtracting the maximum
			if i%cols >= valid {
				x[i] = F(math.NaN())
			}
		}
		want, wantDX := make([]float64, rows), make([]float64, rows*cols)
		for i := range rows {
			s := 0.0
			for _, v := range x[i*cols:][:valid] {
				s += math.Exp(float64(v) - 700)
			}
			want[i] = math.Log(s) + 700
			for j, v := range x[i*cols:][:valid] {
				wantDX[i*cols+j] = float64(dl[i]) * math.Exp(float64(v)-700) / s
			}
		}
		k.LogSumExp(l, x, rows, cols, valid)
		near(t, name("log sum exp ", z), l, want, tol)
		k.LogSumExpGrad(dx, dl, x, l, rows, cols, valid)
		near(t, name("log sum exp grad ", z), dx, wantDX, tol*50) // l is rounded at 700
	}
}

func TestLogSumExpEdges(t *testing.T) {
	inf := math.Inf(1)
	l, dx := make([]float64, 3), draw[float64](1, 6)
	x := []float64{-inf, -inf, 0, math.NaN(), math.NaN(), 1}
	Table[float64]().LogSumExp(l, x, 3, 2, 2)
	if !math.IsInf(l[0], -1) || !math.IsNaN(l[1]) || !math.IsNaN(l[2]) {
		t.Errorf("log sum exp of -Inf, NaN, NaN is %v", l)
	}
	Table[float64]().LogSumExpGrad(dx, []float64{1}, x, l, 1, 2, 2)
	near(t, "gradient where all is -Inf", dx[:2], []float64{0, 0}, 0)
}

func TestPick(t *testing.T) { both(t, testPick[float32], testPick[float64]) }

func testPick[F Float](t *testing.T, _ float64) {
	k := Table[F]()
	const rows, cols, lo, n = 41, 7, 3, 6 // the last column is padding
	ids, x, dy := drawIDs(1, rows, 13), draw[F](2, rows*cols), draw[F](3, rows)
	y, dx, wantY, wantDX := draw[F](4, rows), draw[F](5, rows*cols), make([]float64, rows), make([]float64, rows*cols)
	for i, id := range ids {
		if j := int(id) - lo; j >= 0 && j < n {
			wantY[i] = float64(x[i*cols+j])
			wantDX[i*cols+j] = float64(dy[i])
		}
	}
	k.Pick(y, x, ids, rows, cols, lo, n)
	near(t, "pick", y, wantY, 0)
	k.PickGrad(dx, dy, ids, rows, cols, lo, n)
	near(t, "pick grad", dx, wantDX, 0)
}
