package cpu

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/num"
)

// doLoops holds the operations of links in float64.
var doLoops = [numDos]func(a, b, c float64) float64{
	DoCopy: func(a, b, c float64) float64 { return a }, DoAdd: func(a, b, c float64) float64 { return a + b },
	DoSub: func(a, b, c float64) float64 { return a - b }, DoMul: func(a, b, c float64) float64 { return a * b },
	DoScale: func(a, b, c float64) float64 { return c * a },
	DoGelu: func(a, b, c float64) float64 {
		return Gelu(a)
	}, DoGeluErf: func(a, b, c float64) float64 {
		return GeluErf(a)
	},
	DoSilu: func(a, b, c float64) float64 {
		return Silu(a)
	}, DoSigmoid: func(a, b, c float64) float64 {
		return Sigmoid(a)
	}, DoRelu: func(a, b, c float64) float64 {
		return Relu(a)
	},
	DoSoftcap:     func(a, b, c float64) float64 { return Softcap(a, c) },
	DoGeluGrad:    func(a, b, c float64) float64 { return a * GeluGrad(b) },
	DoGeluErfGrad: func(a, b, c float64) float64 { return a * GeluErfGrad(b) },
	DoSiluGrad: func(a, b, c float64) float64 {
		return a * SiluGrad(b)
	}, DoSigmoidGrad: func(a, b, c float64) float64 {
		return a * SigmoidGrad(b)
	}, DoReluGrad: func(a, b, c float64) float64 {
		return a * ReluGrad(b)
	},
	DoSoftcapGrad: func(a, b, c float64) float64 { return a * SoftcapGrad(b, c) },
	DoSiluMul:     func(a, b, c float64) float64 { return Silu(a) * b },
}

func TestChain(t *testing.T) { both(t, testChain[float32], testChain[float64]) }

// Each operation, and a chain of three with a Temp, with operands of each kind.
func testChain[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for do := range numDos {
		for _, z := range [][2]int{{1, 1}, {1, 1300}, {3, 17}, {70, 600}} {
			rows, cols := z[0], z[1]
			for _, at := range []At{Whole, PerCol, PerRow, One} {
				n := map[At]int{Whole: rows * cols, PerCol: cols, PerRow: rows, One: 1}[at]
				a, b := draw[F](1, rows*cols), draw[F](2, n)
				y, w := make([]F, rows*cols), make([]F, rows*cols)
				c := &Chain{Operands: []Operand{{At: Whole}, {At: at}, {At: Whole}, {At: Whole}, {At: Temp}},
					Links: []Link{{Do: do, To: 2, A: 0, B: 1, C: 1.5}, {Do: DoAdd, To: 4, A: 2, B: 1},
						{Do: DoMul, To: 3, A: 4, B: 0}}}
				k.Chain(c, rows, cols, a, b, y, w)
				wantY, wantW := make([]float64, len(y)), make([]float64, len(w))
				for i := range y {
					v := float64(b[map[At]int{Whole: i, PerCol: i % cols, PerRow: i / cols}[at]])
					wantY[i] = doLoops[do](float64(a[i]), v, 1.5)
					wantW[i] = (wantY[i] + v) * float64(a[i])
				}
				near(t, name("do ", do, z, at), y, wantY, tol)
				near(t, name("after do ", do, z, at), w, wantW, 3*tol)
			}
		}
	}
}

// The gradients of a gate equal those of its separate operations, bit for bit, for one strip and for many,
// also on several threads.
func TestChainOfGate(t *testing.T) { both(t, testChainOfGate[float32], testChainOfGate[float64]) }

func testChainOfGate[F Float](t *testing.T, _ float64) {
	k := Table[F]()
	whole := func(n int) (o []Operand) {
		for range n {
			o = append(o, Operand{At: Whole})
		}
		return o
	}
	together := &Chain{Operands: whole(5), Links: []Link{{Do: DoSiluMulGrad, To: 3, A: 0, B: 2, More: []int{1, 4}}}}
	apart := &Chain{Operands: append(whole(5), Operand{At: Temp}, Operand{At: Temp}),
		Links: []Link{{Do: DoMul, To: 5, A: 0, B: 1},
			{Do: DoSilu, To: 6, A: 2}, {Do: DoMul, To: 4, A: 0, B: 6}, {Do: DoSiluGrad, To: 3, A: 5, B: 2}}}
	for _, z := range [][2]int{{1, 1}, {3, 17}, {70, 600}, {2, 3000}} {
		rows, cols := z[0], z[1]
		n := rows * cols
		dy, up, a := draw[F](1, n), draw[F](2, n), draw[F](3, n)
		da, dup, wantA, wantUp := make([]F, n), make([]F, n), make([]F, n), make([]F, n)
		k.Chain(together, rows, cols, dy, up, a, da, dup)
		k.Chain(apart, rows, cols, dy, up, a, wantA, wantUp)
		for i := range da {
			if da[i] != wantA[i] || dup[i] != wantUp[i] {
				t.Fatalf("%d×%d, element %d: %v and %v, want %v and %v", rows, cols, i, da[i], dup[i],
					wantA[i], wantUp[i])
			}
		}
	}
}

// 16-bit operands and results are read, rounded after each link, and stored.
func TestChainOfHalves(t *testing.T) {
	each(t, func(t *testing.T) {
		const rows, cols = 5, 700
		a, b := make([]num.BF16, rows*cols), make([]num.F16, cols)
		num.Store(a, draw[float32](1, rows*cols))
		num.Store(b, draw[float32](2, cols))
		f, y, z := draw[float32](3, rows*cols), make([]num.BF16, rows*cols), make([]float32, rows*cols)
		c := &Chain{Operands: []Operand{{At: Whole, Elem: num.ElemBF16}, {At: PerCol, Elem: num.ElemF16}, {At: Whole},
			{At: Whole, Elem: num.ElemBF16}, {At: Whole}},
			Links: []Link{{Do: DoMul, To: 3, A: 0, B: 1, Round: num.ElemBF16}, {Do: DoAdd, To: 4, A: 3, B: 2}}}
		Table[float32]().ChainOf(c, rows, cols, Half(a), Half(b), Wide(f), Half(y), Wide(z))
		for i := range y {
			want := num.ToBF16(a[i].Wide() * b[i%cols].Wide())
			if y[i] != want || z[i] != want.Wide()+f[i] {
				t.Fatalf("element %d: %v and %v, want %v and %v", i, y[i].Wide(), z[i], want.Wide(), want.Wide()+f[i])
			}
		}
	})
}

// The bits do not depend on the number of threads.
func TestChainOnThreads(t *testing.T) {
	const n = 100_003
	x, one, two := draw[float32](1, n), make([]float32, n), make([]float32, n)
	c := &Chain{Operands: []Operand{{At: Whole}, {At: Whole}}, Links: []Link{{Do: DoGelu, To: 1}}}
	Table[float32]().Chain(c, 1, n, x, one)
	Threads(1, 2)
	defer Threads(1, 1)
	Table[float32]().Chain(c, 1, n, x, two)
	for i := range one {
		if math.Float32bits(one[i]) != math.Float32bits(two[i]) {
			t.Fatalf("element %d is %v on one thread and %v on two", i, one[i], two[i])
		}
	}
}

// Links on rows equal the kernels' loops, also with vector loops over strips, and with further links.
func TestChainRows(t *testing.T) { both(t, testChainRows[float32], testChainRows[float64]) }

func testChainRows[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for _, z := range [][2]int{{1, 3}, {5, 17}, {50, 17}, {300, 128}, {70, 600}, {3, 1500}} {
		rows, cols := z[0], z[1]
		x, dy, r := draw[F](1, rows*cols), draw[F](2, rows*cols), draw[F](3, rows*cols)
		gain, bias := draw[F](4, cols), draw[F](5, cols)
		operands := []Operand{{At: Whole}, {At: Whole}, {At: Whole}, {At: PerCol}, {At: PerCol},
			{At: Whole}, {At: Temp}}
		for _, c := range []struct {
			name string
			link Link
			want func(y []F)
		}{
			{"layer norm", Link{Do: DoLayerNorm, To: 6, A: 0, B: 3, More: []int{4}, C: eps}, func(y []F) {
				layerNorm(y, x, gain, bias, rows, cols, eps)
			}},
			{"layer norm, no bias", Link{Do: DoLayerNorm, To: 6, A: 0, B: 3, C: eps}, func(y []F) {
				layerNorm(y, x, gain, nil, rows, cols, eps)
			}},
			{"rms norm", Link{Do: DoRMSNorm, To: 6, A: 0, B: 3, C: eps, Base: 1}, func(y []F) {
				rmsNorm(y, x, gain, rows, cols, eps, true)
			}},
			{"layer norm dx", Link{Do: DoLayerNormDX, To: 6, A: 1, B: 0, More: []int{3}, C: eps}, func(y []F) {
				layerNormDX(y, dy, x, gain, rows, cols, eps)
			}},
			{"rms norm dx", Link{Do: DoRMSNormDX, To: 6, A: 1, B: 0, More: []int{3}, C: eps, Base: 1}, func(y []F) {
				rmsNormDX(y, dy, x, gain, rows, cols, eps, true)
			}},
		} {
			y, want := make([]F, rows*cols), make([]F, rows*cols)
			k.Chain(&Chain{Operands: operands, Links: []Link{c.link, {Do: DoAdd, To: 5, A: 6, B: 2}}}, rows, cols, x,
				dy, r, gain, bias, y)
			c.want(want)
			elem.Add(want, r)
			near(t, name(c.name, z), y, wide(want), tol)
		}
	}
}

// The gradient of a cross-entropy in one chain is the sum of its parts, with ids and columns of other
// ranks.
func TestChainClassifier(t *testing.T) {
	both(t, testChainClassifier[float32], testChainClassifier[float64])
}

func testChainClassifier[F Float](t *testing.T, tol float64) {
	const rows, cols, lo, valid = 9, 700, 3, 690
	x, dl, dp, l := draw[F](1, rows*cols), draw[F](2, rows), draw[F](3, rows), draw[F](4, rows)
	l[2] = F(math.Inf(-1))
	ids, y, want, part := drawIDs(5, rows, valid), make([]F, rows*cols), make([]F, rows*cols), make([]F, rows*cols)
	logSumExpGrad(want, dl, x, l, rows, cols, valid)
	pickGrad(part, dp, ids, rows, cols, lo, valid)
	elem.Add(want, part)
	for _, links := range [][]Link{
		{{Do: DoExpGrad, To: 4, A: 0, B: 1, More: []int{2, 6}}, {Do: DoAddPick, To: 4, A: 4, B: 3, More: []int{5}}},
		{{Do: DoExpGrad, To: 7, A: 0, B: 1, More: []int{2, 6}}, {Do: DoAddPick, To: 4, A: 7, B: 3, More: []int{5}}},
		{{Do: DoPickGrad, To: 7, A: 3, B: 3, More: []int{5}}, {Do: DoExpGrad, To: 8, A: 0, B: 1, More: []int{2, 6}},
			{Do: DoAdd, To: 4, A: 7, B: 8}},
	} {
		c := &Chain{Operands: []Operand{{At: PerRow}, {At: Whole}, {At: PerRow}, {At: PerRow}, {At: Whole},
			{At: PerRow}, {At: One}, {At: Temp}, {At: Temp}}, Links: links}
		Table[F]().ChainOf(c, rows, cols, Wide(dl), Wide(x), Wide(l), Wide(dp), Wide(y), IDs[F](ids, lo, valid),
			Limit[F](valid))
		near(t, "classifier", y, wide(want), tol)
	}
}

// A row's number is added to an operand with one element per row, per column, or for all, as to a Whole
// one.
func TestChainAddPickTo(t *testing.T) {
	both(t, testChainAddPickTo[float32], testChainAddPickTo[float64])
}

func testChainAddPickTo[F Float](t *testing.T, tol float64) {
	const rows, cols = 50, 17
	ids, dp := drawIDs(1, rows, cols), draw[F](2, rows)
	for at, n := range map[At]int{Whole: rows * cols, PerRow: rows, PerCol: cols, One: 1} {
		a, y, want := draw[F](3, n), make([]F, rows*cols), make([]float64, rows*cols)
		for i := range want {
			want[i] = float64(a[map[At]int{Whole: i, PerRow: i / cols, PerCol: i % cols}[at]])
		}
		for i, id := range ids {
			if id >= 0 && id < cols {
				want[i*cols+int(id)] += float64(dp[i])
			}
		}
		c := &Chain{Operands: []Operand{{At: at}, {At: PerRow}, {At: Whole}, {At: PerRow}},
			Links: []Link{{Do: DoAddPick, To: 2, A: 0, B: 1, More: []int{3}}}}
		Table[F]().ChainOf(c, rows, cols, Wide(a), Wide(dp), Wide(y), IDs[F](ids, 0, cols))
		near(t, name("a pick, added to operand ", at), y, want, tol)
	}
}
