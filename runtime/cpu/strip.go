package cpu

import "unsafe"

// A strip is what a product in assembly works on: m rows of at most two vectors of columns,
//
//	for r, j := range [m, cols] { c[r,j] = (from[r,j] if acc) + sum_p a[r,p]*b[p,j] }
//
// with one fused multiply-add for each p, in order, whatever m and cols are. The generators in tools/avo know its
// offsets. Strides are in bytes. b has two whole vectors a row, though only cols columns of them are used.
type strip struct {
	c, a, b unsafe.Pointer
	cs      uintptr // c from row to row
	ai, ap  uintptr // a from row to row of a panel, from p to p
	bp      uintptr // b from p to p
	panel   uintptr // a from panel to panel
	m, k    int     // at least 1; the assembly counts m down
	acc     int     // 0 or 1
	cols    int
	mask    [16]int32 // AVX2's: all ones for the elements of two vectors that are there
	at      uintptr   // the assembly's: where this panel of a begins
	next    uintptr   // what to bring near meanwhile: an address, of which nothing is read
	late    int       // the assembly's: steps of k left when c is asked for
	step    uintptr   // from each such address to the following one
	// where lies what is added if acc is 1: c itself, or other rows, or one; the assembly counts it up
	from   uintptr
	fs     uintptr        // from from row to row
	words  int            // of an element, as mask has it
	keep   unsafe.Pointer // if not nil, m is one panel of rows, and b's rows are packed here as they are read
	ask    [2]uintptr     // the assembly's: what of c, and of from, is asked for next
	second int            // 1: c is asked for into the second cache; 0: into the first
	near   bool           // c is near: tiles do not ask for it
	tiles  unsafe.Pointer // gemmTiles' own, which it keeps from call to call
}

// setCols sets how many columns are there, of elements of so many words of 4 bytes.
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
