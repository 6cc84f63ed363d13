//go:build !linux

package tensors

// adviseHuge does nothing: the system decides on its own.
func adviseHuge([]byte) {}
