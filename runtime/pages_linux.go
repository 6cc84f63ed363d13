package runtime

import "syscall"

// wantLargePages asks the system for large pages where b lies, which is whole pages of them from its first byte on. It is a wish:
// a system that has none left, or gives none, gives small ones.
func wantLargePages(b []byte) {
	_ = syscall.Madvise(b[:len(b)&^(largePage-1)], madviseHuge)
}

// madviseHuge is MADV_HUGEPAGE of <asm-generic/mman-common.h>, which package syscall does not name for every machine.
const madviseHuge = 14
