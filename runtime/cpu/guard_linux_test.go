package cpu

import (
	"math/rand"
	"syscall"
	"testing"
	"unsafe"
)

// atEnd returns n float32s at the end of accessible memory: the page after them, or before them, is
// protected.
func atEnd(t *testing.T, n int, first bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := (4*n + page - 1) / page * page
	b, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	for _, at := range []int{0, size + page} {
		if err := syscall.Mprotect(b[at:at+page], syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	from := page + size - 4*n
	if first {
		from = page
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[from])), n)
}

// No matmul reads or writes memory outside its operands.
func TestMatMulAtTheEndOfMemory(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(3))
		sizes := []int{1, 2, 15, 16, 17, 31, 32, 33, 47, 65, 100, 130, 513, 545}
		size := func() int { return sizes[r.Intn(len(sizes))] }
		for i := range 120 {
			m, n, k := size(), size(), size()
			first := i%2 == 0
			c, a, b := atEnd(t, m*n, first), atEnd(t, m*k, first), atEnd(t, k*n, first)
			for _, x := range [][]float32{a, b} {
				for j := range x {
					x[j] = r.Float32()
				}
			}
			for bits := range 8 {
				Table[float32]().MatMul(c, a, b, m, n, k, bits&1 > 0, bits&2 > 0, bits&4 > 0)
			}
		}
	})
}
