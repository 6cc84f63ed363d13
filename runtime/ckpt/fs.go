package ckpt

import (
	"io"
	"os"
)

// fileSystem is the disk operations of Save. Tests make them fail or stop.
type fileSystem interface {
	MkdirAll(path string) error
	Mkdir(path string) error
	Create(path string) (syncFile, error)
	SyncDir(path string) error // makes the names in a folder durable
	Rename(from, to string) error
	RemoveAll(path string) error
}

type syncFile interface {
	io.WriteCloser
	Sync() error
}

// diskFile is a file of a disk that begins to write what it is given at once. The disk then works while the next bytes
// are computed, and Sync has less to wait for.
type diskFile struct {
	*os.File
	size int64
}

func (f *diskFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	startWriting(f.File, f.size, int64(n))
	f.size += int64(n)
	return n, err
}

type osFS struct{}

func (osFS) MkdirAll(path string) error { return os.MkdirAll(path, 0o777) }
func (osFS) Mkdir(path string) error    { return os.Mkdir(path, 0o777) }
func (osFS) Create(path string) (syncFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f}, nil
}
func (osFS) SyncDir(path string) error    { return syncDir(path) }
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) RemoveAll(path string) error  { return os.RemoveAll(path) }
