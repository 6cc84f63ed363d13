package cpu

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/num"
)

// doLoops are what the links do, in float64.
var doLoops = [numDos]func(a, b, c float64) float64{
	DoCopy: func(a, b, c float64) float64 { return a }, DoAdd: func(a, b, c float64) float64 { return a + b },
	DoSub: func(a, b, c float64) float64 { return a - b }, DoMul: func(a, b, c float64) float64 { return a * b },
	DoScale: func(a, b, c float64) float64 { return c * a },
	DoGelu:  func(a, b, c float64) float64 { return Gelu(a) }, DoGeluErf: func(a, b, c float64) float64 { return GeluErf(a) },
	DoSilu: func(a, b, c float64) float64 { return Silu(a) }, DoRelu: func(a, b, c float64) float64 { return Relu(a) },
	DoSoftcap:     func(a, b, c float64) float64 { return Softcap(a, c) },
	DoGeluGrad:    func(a, b, c float64) float64 { return a * GeluGrad(b) },
	DoGeluErfGrad: func(a, b, c float64) float64 { return a * GeluErfGrad(b) },
	DoSiluGrad:    func(a, b, c float64) float64 { return a * SiluGrad(b) }, DoReluGrad: func(a, b, c float64) float64 { return a * ReluGrad(b) },
	DoSoftcapGrad: func(a, b, c float64) float64 { return a * SoftcapGrad(b, c) },
}

func TestChain(t *testing.T) { both(t, testChain[float32], testChain[float64]) }

// Each operation, and a chain of three with a strip of its own, with operands of each kind.
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
					Links: []Link{{Do: do, To: 2, A: 0, B: 1, C: 1.5}, {Do: DoAdd, To: 4, A: 2, B: 1}, {Do: DoMul, To: 3, A: 4, B: 0}}}
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

// Operands and results of 16 bits: read, rounded after each link, stored.
func TestChainOfHalves(t *testing.T) {
	each(t, func(t *testing.T) {
		const rows, cols = 5, 700
		a, b := make([]num.BF16, rows*cols), make([]num.F16, cols)
		num.Store(a, draw[float32](1, rows*cols))
		num.Store(b, draw[float32](2, cols))
		f, y, z := draw[float32](3, rows*cols), make([]num.BF16, rows*cols), make([]float32, rows*cols)
		c := &Chain{Operands: []Operand{{At: Whole, Elem: num.ElemBF16}, {At: PerCol, Elem: num.ElemF16}, {At: Whole}, {At: Whole, Elem: num.ElemBF16}, {At: Whole}},
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
