//go:build unix

package data

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
)

// blob is a read-only file, mapped into memory where the system can.
type blob struct {
	file *os.File
	size int64
	mem  []byte // nil where the file could not be mapped
}

func openBlob(path string) (*blob, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	b := &blob{file: f, size: size}
	if n := int(size); n > 0 && int64(n) == size {
		if mem, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_SHARED); err == nil {
			b.mem = mem
		}
	}
	return b, nil
}

// ReadAt reads len(p) bytes. Where the file has become shorter since it was opened, it fails as a read of
// the file would, although the mapping faults.
func (b *blob) ReadAt(p []byte, off int64) (n int, err error) {
	if b.mem == nil {
		return b.file.ReadAt(p, off)
	}
	if off+int64(len(p)) > b.size {
		return 0, io.ErrUnexpectedEOF
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("%s became shorter or unreadable while it was in use: %v", b.file.Name(), r)
		}
	}()
	return copy(p, b.mem[off:]), nil
}

func (b *blob) Close() error {
	if b.mem != nil {
		if err := syscall.Munmap(b.mem); err != nil {
			return err
		}
		b.mem = nil
	}
	return b.file.Close()
}
