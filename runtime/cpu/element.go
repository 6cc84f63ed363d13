package cpu

import (
	"github.com/planc-dev/planc/runtime/vec"
)

// elements holds the operations of chains, each y[i] = do(a[i], b[i], c) for all of y.
type elements[F Float] [numDos]func(y, a, b []F, c F)

var (
	elements32 elements[float32]
	elements64 = portableElements[float64]()
)

func elementsOf[F Float]() *elements[F] {
	switch e := any((*elements[F])(nil)).(type) {
	case *elements[float32]:
		return any(&elements32).(*elements[F])
	default:
		_ = e
		return any(&elements64).(*elements[F])
	}
}

// portableElements returns loops in Go. Each result is rounded to F, so that no machine fuses it with a
// later operation.
func portableElements[F Float]() elements[F] {
	one := func(f func(F) F) func(y, a, b []F, c F) {
		return func(y, a, _ []F, _ F) {
			for i, x := range a[:len(y)] {
				y[i] = f(x)
			}
		}
	}
	slope := func(f func(F) F) func(y, a, b []F, c F) {
		return func(y, a, b []F, _ F) {
			a = a[:len(y)]
			for i, x := range b[:len(y)] {
				y[i] = F(a[i] * f(x))
			}
		}
	}
	return elements[F]{
		DoCopy: func(y, a, _ []F, _ F) { copy(y, a) },
		DoAdd: func(y, a, b []F, _ F) {
			b = b[:len(y)]
			for i, x := range a[:len(y)] {
				y[i] = F(x + b[i])
			}
		},
		DoSub: func(y, a, b []F, _ F) {
			b = b[:len(y)]
			for i, x := range a[:len(y)] {
				y[i] = F(x - b[i])
			}
		},
		DoMul: func(y, a, b []F, _ F) {
			b = b[:len(y)]
			for i, x := range a[:len(y)] {
				y[i] = F(x * b[i])
			}
		},
		DoScale: func(y, a, _ []F, c F) {
			for i, x := range a[:len(y)] {
				y[i] = F(c * x)
			}
		},
		DoGelu: one(Gelu[F]), DoGeluErf: one(GeluErf[F]), DoSilu: one(Silu[F]), DoSigmoid: one(Sigmoid[F]),
		DoRelu:     one(Relu[F]),
		DoGeluGrad: slope(GeluGrad[F]), DoGeluErfGrad: slope(GeluErfGrad[F]), DoSiluGrad: slope(SiluGrad[F]),
		DoSigmoidGrad: slope(SigmoidGrad[F]), DoReluGrad: slope(ReluGrad[F]),
		DoSiluMul: func(y, a, b []F, _ F) {
			b = b[:len(y)]
			for i, x := range a[:len(y)] {
				y[i] = F(Silu(x) * b[i])
			}
		},
		DoSoftcap: func(y, a, _ []F, c F) {
			for i, x := range a[:len(y)] {
				y[i] = Softcap(x, c)
			}
		},
		DoSoftcapGrad: func(y, a, b []F, c F) {
			a = a[:len(y)]
			for i, x := range b[:len(y)] {
				y[i] = F(a[i] * SoftcapGrad(x, c))
			}
		},
	}
}

// useElements replaces the loops that package vec has.
func useElements(k *vec.Kernels) {
	elements32 = portableElements[float32]()
	if k == nil {
		return
	}
	type loop = func(y, a, b []float32, c float32)
	one := func(f func(y, a []float32)) loop { return func(y, a, _ []float32, _ float32) { f(y, a) } }
	two := func(f func(y, a, b []float32)) loop { return func(y, a, b []float32, _ float32) { f(y, a, b) } }
	for do, f := range map[Do]loop{
		DoAdd: two(k.Add), DoSub: two(k.Sub), DoMul: two(k.Mul),
		DoScale: func(y, a, _ []float32, c float32) { k.Scale(y, a, c) },
		DoGelu:  one(k.Gelu), DoGeluErf: one(k.GeluErf), DoSilu: one(k.Silu), DoSigmoid: one(k.Sigmoid),
		DoRelu:     one(k.Relu),
		DoGeluGrad: two(k.GeluGrad), DoGeluErfGrad: two(k.GeluErfGrad), DoSiluGrad: two(k.SiluGrad),
		DoSigmoidGrad: two(k.SigmoidGrad),
		DoReluGrad:    two(k.ReluGrad), DoSiluMul: two(k.SiluMul),
		DoSoftcap:     func(y, a, _ []float32, c float32) { k.Softcap(y, a, c, 1/c) },
		DoSoftcapGrad: func(y, a, b []float32, c float32) { k.SoftcapGrad(y, a, b, 1/c) },
	} {
		elements32[do] = f
	}
}
