package runtime

import (
	"os"
	"syscall"
	"unsafe"
)

// hugePage is the size of a large page on the machines that have them, in bytes, and madvHuge is Linux's MADV_HUGEPAGE.
const (
	hugePage = 2 << 20
	madvHuge = 14
)

// adviseHuge asks for large pages under b, before it is touched: they come in an eighth of the time of small ones, and
// rows that lie far apart need fewer entries of the processor's table of pages. That there are none is no error.
func adviseHuge(b []byte) {
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (hugePage - 1))
	if n := (len(b) - at) / hugePage * hugePage; n > 0 && os.Getpagesize() < hugePage {
		_ = syscall.Madvise(b[at:at+n], madvHuge)
	}
}
