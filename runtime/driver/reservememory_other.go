//go:build !unix

package driver

// reserve does nothing: these systems have no mmap.
func reserve(int64) error { return nil }
