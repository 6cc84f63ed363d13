//go:build !linux

package runtime

// wantLargePages asks for nothing: only Linux has a name for it that package syscall knows.
func wantLargePages([]byte) {}
