package cpu

import (
	"os"
	"syscall"
	"unsafe"
)

// madvHuge is Linux's MADV_HUGEPAGE.
const madvHuge = 14

// AskLargePages asks for large pages under b, before it is touched: they come in an eighth of the time of small ones, and
// rows that lie far apart need fewer entries of the processor's table of pages. That there are none is no error.
func AskLargePages(b []byte) {
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (largePage - 1))
	if n := (len(b) - at) / largePage * largePage; n > 0 && os.Getpagesize() < largePage {
		_ = syscall.Madvise(b[at:at+n], madvHuge)
	}
}
