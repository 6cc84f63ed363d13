//go:build !unix

package data

import "os"

// openAtOnce opens a file for reading.
func openAtOnce(path string) (*os.File, error) { return os.Open(path) }
