package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// runGap is the number of zero rows that do not end a run: a matmul of few rows costs more than they do.
const runGap = 8

// nextRun returns the next run of nonzero rows of x, from row at on. Its first and last rows are nonzero.
func nextRun[F elem.Float](x []F, at, rows, cols int) (from, to int) {
	for from = at; from < rows && zeroes(x[from*cols:][:cols]); from++ {
	}
	for i := from; i < rows && i < max(to, from)+runGap; i++ {
		if !zeroes(x[i*cols:][:cols]) {
			to = i + 1
		}
	}
	return from, to
}

func zeroes[F elem.Float](x []F) bool {
	at := unsafe.Pointer(unsafe.SliceData(x))
	if unsafe.Sizeof(*new(F)) == 4 {
		return noBits(unsafe.Slice((*uint32)(at), len(x)))
	}
	return noBits(unsafe.Slice((*uint64)(at), len(x)))
}

// noBits reports whether all numbers are 0, ignoring signs. It checks eight at once, because empty slots
// are scanned in each matmul.
func noBits[T uint32 | uint64](x []T) bool {
	for len(x) >= 8 {
		v := (*[8]T)(x)
		if (v[0]|v[1]|v[2]|v[3]|v[4]|v[5]|v[6]|v[7])<<1 != 0 {
			return false
		}
		x = x[8:]
	}
	for _, v := range x {
		if v<<1 != 0 {
			return false
		}
	}
	return true
}
