//go:build !linux

package cpu

// AskLargePages does nothing: the system decides on its own.
func AskLargePages([]byte) {}
