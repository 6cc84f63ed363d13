//go:build !linux

package runtime

// adviseHuge does nothing: the system decides on its own.
func adviseHuge([]byte) {}
