package cpu

import "unsafe"

// strip is the argument of a matmul in assembly: m rows of at most two vectors of columns,
//
//	for r, j := range [m, cols] { c[r,j] = (from[r,j] if acc) + sum_p a[r,p]*b[p,j] }
//
// with one fused multiply-add for each p, in order, whatever m and cols are. The generators in tools/avo
// use its offsets. Strides are in bytes. b has two whole vectors per row, although only cols columns of
// them are used.
type strip struct {
	c, a, b unsafe.Pointer
	cs      uintptr // from row to row of c
	ai, ap  uintptr // from row to row of a panel of a; from p to p
	bp      uintptr // from p to p of b
	panel   uintptr // from panel to panel of a
	m, k    int     // at least 1; the assembly counts m down
	acc     int     // 0 or 1
	cols    int
	mask    [16]int32 // for AVX2: all ones for the existing elements of two vectors
	at      uintptr   // used by the assembly: where this panel of a begins
	next    uintptr   // address to prefetch meanwhile
	late    int       // used by the assembly: steps of k left when c is prefetched
	step    uintptr   // from one such address to the next
	// address of what is added if acc is 1: c itself, other rows, or one row; the assembly advances it
	from   uintptr
	fs     uintptr        // from row to row of from
	words  int            // of an element, for mask
	keep   unsafe.Pointer // if not nil, m is one panel of rows, and b's rows are packed here while they are read
	ask    [2]uintptr     // used by the assembly: addresses in c and from to prefetch next
	second int            // 1: c is prefetched into the second-level cache; 0: into the first
	near   bool           // c is in the cache: tiles do not prefetch it
	tiles  unsafe.Pointer // working memory of gemmTiles, kept from call to call
}

// setCols sets the number of existing columns, with elements of so many 4-byte words.
func (s *strip) setCols(cols, words int) {
	if s.cols == cols && s.words == words {
		return
	}
	s.cols, s.words = cols, words
	for i := range s.mask {
		s.mask[i] = 0
		if i < cols*words {
			s.mask[i] = -1
		}
	}
}
