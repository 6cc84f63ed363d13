//go:build !unix

package data

import "os"

// blob is a read-only file.
type blob struct {
	*os.File
	size int64
}

func openBlob(path string) (*blob, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return &blob{f, size}, nil
}
