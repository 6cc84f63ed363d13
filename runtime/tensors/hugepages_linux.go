package tensors

import (
	"os"
	"syscall"
	"unsafe"
)

// hugePage is the size of a huge page in bytes, and madvHuge is Linux's MADV_HUGEPAGE.
const (
	hugePage = 2 << 20
	madvHuge = 14
)

// adviseHuge requests huge pages for b before it is first touched. They take an eighth of the time to allocate, and
// distant rows need fewer TLB entries. It is not an error if there are none.
func adviseHuge(b []byte) {
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (hugePage - 1))
	if n := (len(b) - at) / hugePage * hugePage; n > 0 && os.Getpagesize() < hugePage {
		_ = syscall.Madvise(b[at:at+n], madvHuge)
	}
}
