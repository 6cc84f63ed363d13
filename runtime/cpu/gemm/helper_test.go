package gemm

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// each runs a test with the engines of each ISA of this machine.
func each(t *testing.T, f func(*testing.T)) {
	for isa := asm.Portable; isa <= asm.Best(); isa++ {
		t.Run(isa.String(), func(t *testing.T) {
			Use(isa)
			defer Use(asm.Best())
			f(t)
		})
	}
}

// draw returns n normally distributed numbers, which depend only on the seed.
func draw[F elem.Float](seed int64, n int) []F {
	r := rand.New(rand.NewSource(seed))
	x := make([]F, n)
	for i := range x {
		x[i] = F(r.NormFloat64())
	}
	return x
}

func wide[F elem.Float](x []F) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// start returns what a sum is added to: before if acc, otherwise zeros.
func start[F elem.Float](before []F, acc bool) []float64 {
	if acc {
		return wide(before)
	}
	return make([]float64, len(before))
}

func name(xs ...any) string { return fmt.Sprint(xs...) }

func naiveMatMul[F elem.Float](c []float64, a, b []F, m, n, k int, ta, tb bool) {
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
