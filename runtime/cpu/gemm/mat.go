package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// Mat is a matrix with ld elements from row to row, or its transpose. 16-bit elements are in h instead of
// d; only the matmuls of matMulPairs read these.
type Mat[F elem.Float] struct {
	D  []F
	LD int
	T  bool
	H  []uint16
}

// At returns element (i, j) of the matrix.
func (x Mat[F]) At(i, j int) F {
	if x.T {
		i, j = j, i
	}
	return x.D[i*x.LD+j]
}

// Rows returns the rows of x from i on.
func (x Mat[F]) Rows(i int) Mat[F] {
	if x.H != nil {
		x.H = x.H[i*x.LD:]
	} else {
		x.D = x.D[i*x.LD:]
	}
	return x
}

// from returns the matrix from row i on.
func (x Mat[F]) from(i int) Mat[F] {
	switch {
	case !x.T:
		return x.Rows(i)
	case x.H != nil:
		x.H = x.H[i:]
	default:
		x.D = x.D[i:]
	}
	return x
}

// to returns the matrix from column j on.
func (x Mat[F]) to(j int) Mat[F] {
	x.T = !x.T
	x = x.from(j)
	x.T = !x.T
	return x
}

// copyFrom copies m rows of n elements.
func (x Mat[F]) copyFrom(from Mat[F], m, n int) {
	for i := range m {
		copy(x.D[i*x.LD:][:n], from.D[i*from.LD:])
	}
}

// rowsOf returns m rows of n elements, or one row that is repeated m times.
func rowsOf[F elem.Float](x []F, m, n int) Mat[F] {
	if len(x) == n && m > 1 {
		return Mat[F]{D: x}
	}
	return Mat[F]{D: x[:m*n], LD: n}
}

// Size returns the bytes of a number.
func (x Mat[F]) Size() uintptr {
	if x.H != nil {
		return 2
	}
	return elem.Size[F]()
}

// Address returns the address of number i of x.
func (x Mat[F]) Address(i int) unsafe.Pointer {
	if x.H != nil {
		return unsafe.Pointer(&x.H[i])
	}
	return unsafe.Pointer(&x.D[i])
}
