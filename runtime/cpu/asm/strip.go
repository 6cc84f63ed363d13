package asm

import "unsafe"

// Strip is the argument of a matmul in assembly: m rows of at most two vectors of columns,
//
//	for r, j := range [m, cols] { c[r,j] = (from[r,j] if acc) + sum_p a[r,p]*b[p,j] }
//
// with one fused multiply-add for each p, in order, whatever m and cols are. b has two whole vectors per row,
// although only cols columns of them are used. The generators in tools/avo use the offsets of the fields. The
// assembly counts m down and advances from.
type Strip struct {
	C, A, B unsafe.Pointer
	strides
	sizes
	mask [16]int32 // for AVX2: all ones for the existing elements of two vectors
	at   uintptr   // used by the assembly: where this panel of a begins
	Next uintptr   // address to prefetch meanwhile
	late int       // used by the assembly: steps of k left when c is prefetched
	Step uintptr   // from one address to prefetch to the next
	// address of what is added if acc is 1: c itself, other rows, or one row
	From   uintptr
	FS     uintptr        // from row to row of from, in bytes
	Words  int            // of an element, for mask
	Keep   unsafe.Pointer // if not nil, m is one panel of rows, and b's rows are packed here while they are read
	ask    [2]uintptr     // used by the assembly: addresses in c and from to prefetch next
	Second int            // 1: c is prefetched into the second-level cache; 0: into the first
	Near   bool           // c is in the cache: tiles do not prefetch it
	tiles  unsafe.Pointer // working memory of GemmTiles, kept from call to call
}

// strides are the distances of a strip's elements, in bytes.
type strides struct {
	CS     uintptr // from row to row of c
	AI, AP uintptr // from row to row of a panel of a; from p to p
	BP     uintptr // from p to p of b
	Panel  uintptr // from panel to panel of a
}

// sizes are those of a strip's matmul. m and k are at least 1. acc is 0 or 1.
type sizes struct{ M, K, Acc, Cols int }

// SetCols sets the number of existing columns, with elements of so many 4-byte words.
func (s *Strip) SetCols(cols, words int) {
	if s.Cols == cols && s.Words == words {
		return
	}
	s.Cols, s.Words = cols, words
	for i := range s.mask {
		s.mask[i] = 0
		if i < cols*words {
			s.mask[i] = -1
		}
	}
}
