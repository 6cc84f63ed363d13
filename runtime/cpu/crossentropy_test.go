package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/num"
)

// logitShapes are rows and columns: none, one, odd numbers, one part of a row, several parts, and a short
// last part.
var logitShapes = [][2]int{{0, 3}, {1, 1}, {3, 7}, {5, 131}, {4, partLogits}, {3, 2*partLogits + 17},
	{2, rowParts*partLogits + 1030}}

// classified computes CrossEntropy in float64.
func classified[F Float](dl, x []F, ids []int32, rows, cols int) (ce, dx []float64) {
	ce, dx = make([]float64, rows), make([]float64, rows*cols)
	for i := range rows {
		row, top, sum := x[i*cols:][:cols], math.Inf(-1), 0.0
		for _, v := range row {
			if float64(v) > top {
				top = float64(v)
			}
		}
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		ce[i] = top + math.Log(sum)
		for j, v := range row {
			dx[i*cols+j] = float64(dl[i]) * math.Exp(float64(v)-top) / sum
		}
		if j := int(ids[i]); j >= 0 && j < cols {
			ce[i] -= float64(row[j])
			dx[i*cols+j] -= float64(dl[i])
		}
	}
	return ce, dx
}

// nearEach is near with an error relative to each element, however small: most ids have a probability near
// zero.
func nearEach[F Float](t *testing.T, what string, got []F, want []float64, tol float64) {
	t.Helper()
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tol*math.Abs(w)+1e-30) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// drawLogits returns logits that would overflow without subtracting their maximum, and labels inside and
// outside the columns.
func drawLogits[F Float](rows, cols int) (x, dl []F, ids []int32) {
	x, dl, ids = draw[F](1, rows*cols), draw[F](2, rows), drawIDs(3, rows, cols+1)
	for i := range x {
		x[i] = x[i]*10 + 700
	}
	if rows > 2 {
		ids[2] = -100 // the label of ignored positions in other programs
	}
	return x, dl, ids
}

func TestCrossEntropy(t *testing.T) { both(t, testCrossEntropy[float32], testCrossEntropy[float64]) }

func testCrossEntropy[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for _, z := range logitShapes {
		rows, cols := z[0], z[1]
		x, dl, ids := drawLogits[F](rows, cols)
		ce, dx := draw[F](4, rows), draw[F](5, rows*cols)
		want, wantDX := classified(dl, x, ids, rows, cols)
		k.CrossEntropy(ce, dx, dl, x, ids, rows, cols, cols)
		near(t, name("cross entropy ", z), ce, want, tol)
		nearEach(t, name("its gradient ", z), dx, wantDX, tol/20)
		k.CrossEntropy(ce, x, dl, x, ids, rows, cols, cols)
		near(t, name("in place of the logits ", z), x, wide(dx), 0)
	}
}

// With 16-bit logits both results equal those of the same numbers in float32, and the gradient is rounded
// once.
func TestCrossEntropyOf16Bits(t *testing.T) {
	each(t, func(t *testing.T) { testCrossEntropyHalf[num.BF16](t); testCrossEntropyHalf[num.F16](t) })
}

func testCrossEntropyHalf[H num.Half](t *testing.T) {
	for _, z := range logitShapes {
		rows, cols := z[0], z[1]
		x, dl, ids := drawLogits[float32](rows, cols)
		half, got := make([]H, rows*cols), make([]float32, rows*cols)
		num.Store(half, x)
		num.Load(x, half)
		ce, want, dx := draw[float32](4, rows), draw[float32](5, rows), draw[float32](6, rows*cols)
		CrossEntropyHalf(ce, half, dl, half, ids, rows, cols, cols)
		num.Load(got, half)
		Table[float32]().CrossEntropy(want, dx, dl, x, ids, rows, cols, cols)
		num.Store(half, dx)
		num.Load(dx, half)
		near(t, name("cross entropy ", z), ce, wide(want), 0)
		near(t, name("its gradient ", z), got, wide(dx), 0)
	}
}

// Columns after the valid ones are not read, and their gradient is 0. The others have the bits of rows without padding.
func TestCrossEntropyIgnoresPadding(t *testing.T) {
	both(t, testLogitPadding[float32], testLogitPadding[float64])
	each(t, func(t *testing.T) { testHalfLogitPadding[num.BF16](t); testHalfLogitPadding[num.F16](t) })
}

func testLogitPadding[F Float](t *testing.T, _ float64) {
	for _, z := range logitShapes {
		rows, valid, cols := z[0], z[1], z[1]+5
		x, dl, ids := drawLogits[F](rows, valid)
		ce, dx, want, wantDX := draw[F](4, rows), draw[F](5, rows*cols), draw[F](6, rows), draw[F](7, rows*valid)
		Table[F]().CrossEntropy(want, wantDX, dl, x, ids, rows, valid, valid)
		wider := padLogits(x, rows, valid, cols, F(math.NaN()))
		Table[F]().CrossEntropy(ce, dx, dl, wider, ids, rows, cols, valid)
		near(t, name("cross entropy ", z), ce, wide(want), 0)
		near(t, name("its gradient ", z), dx, wide(padLogits(wantDX, rows, valid, cols, 0)), 0)
	}
}

func testHalfLogitPadding[H num.Half](t *testing.T) {
	for _, z := range logitShapes {
		rows, valid, cols := z[0], z[1], z[1]+5
		x, dl, ids := drawLogits[float32](rows, valid)
		half, wider := make([]H, rows*valid), make([]H, rows*cols)
		num.Store(half, x)
		num.Store(wider, padLogits(x, rows, valid, cols, float32(math.NaN())))
		ce, want := draw[float32](4, rows), draw[float32](5, rows)
		CrossEntropyHalf(want, half, dl, half, ids, rows, valid, valid)
		CrossEntropyHalf(ce, wider, dl, wider, ids, rows, cols, valid)
		got, wantDX := make([]float32, rows*cols), make([]float32, rows*valid)
		num.Load(got, wider)
		num.Load(wantDX, half)
		near(t, name("cross entropy ", z), ce, wide(want), 0)
		near(t, name("its gradient ", z), got, wide(padLogits(wantDX, rows, valid, cols, 0)), 0)
	}
}

// padLogits widens rows of x from valid to cols columns.
func padLogits[F Float](x []F, rows, valid, cols int, padding F) []F {
	out := slices.Repeat([]F{padding}, rows*cols)
	for i := range rows {
		copy(out[i*cols:], x[i*valid:][:valid])
	}
	return out
}

// Rows with some or all elements -Inf; rows with NaN and Inf, which become NaN completely; and other rows,
// which are not affected.
func TestCrossEntropyEdges(t *testing.T) { both(t, testLogitEdges[float32], testLogitEdges[float64]) }

func testLogitEdges[F Float](t *testing.T, tol float64) {
	const cols = partLogits + 40
	inf, nan := F(math.Inf(1)), F(math.NaN())
	x, dl, ids := drawLogits[F](7, cols)
	fill := func(row []F, v F) {
		for i := range row {
			row[i] = v
		}
	}
	row := func(i int) []F { return x[i*cols:][:cols] }
	for i := range ids {
		ids[i] = 3
	}
	fill(row(0)[:partLogits], -inf) // the label's probability is 0
	fill(row(1), -inf)
	fill(row(2)[partLogits:], -inf)
	row(3)[partLogits+1] = nan
	row(4)[2] = inf
	fill(row(5), -inf)
	row(5)[cols-1] = nan
	ce, dx := draw[F](4, 7), draw[F](5, 7*cols)
	want, wantDX := classified(dl, x, ids, 7, cols)
	fill(dx[cols:2*cols], 1)
	Table[F]().CrossEntropy(ce, dx, dl, x, ids, 7, cols, cols)
	for i := range 7 {
		what, got, grad := name("row ", i), ce[i:i+1], dx[i*cols:][:cols]
		switch i {
		case 1: // -Inf - -Inf; the exponentials are 0
			none := make([]float64, cols)
			none[3] = -float64(dl[1])
			near(t, what, grad, none, 0)
			if got[0] == got[0] {
				t.Errorf("%s: %v", what, got)
			}
		case 3, 4, 5:
			for _, v := range slices.Concat(grad, got) {
				if v == v {
					t.Fatalf("%s has a number, %v", what, v)
				}
			}
		default:
			near(t, what, got, want[i:i+1], tol)
			nearEach(t, what, grad, wantDX[i*cols:][:cols], tol/20)
		}
	}
}

// BenchmarkCrossEntropy compares CrossEntropy with the three separate passes that it replaces, with the
// sizes of GPT-2 and nano, and logits in memory.
func BenchmarkCrossEntropy(b *testing.B) {
	k := Table[float32]()
	for _, z := range [][2]int{{256, 50257}, {768, 256}, {2048, 256}} {
		rows, cols := z[0], z[1]
		x, dl, ids := drawLogits[float32](rows, cols)
		ce, lse, dx := make([]float32, rows), make([]float32, rows), make([]float32, rows*cols)
		b.Run(name("one pass ", z), func(b *testing.B) {
			for b.Loop() {
				k.CrossEntropy(ce, x, dl, x, ids, rows, cols, cols)
			}
		})
		b.Run(name("several ", z), func(b *testing.B) {
			for b.Loop() {
				k.LogSumExp(lse, x, rows, cols, cols)
				k.Pick(ce, x, ids, rows, cols, 0, cols)
				k.LogSumExpGrad(dx, dl, x, lse, rows, cols, cols)
			}
		})
	}
}
