package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// lockName is the file in a folder of checkpoints that the run which saves there has locked. It stays there:
// what counts is the lock, which ends with the process.
const lockName = ".lock"

// ErrLocked is the error of Lock and LockFile if another run has the lock.
var ErrLocked = errors.New("another run has locked it")

// Lock makes a folder for checkpoints and keeps other runs out of it until release is called or the process
// ends. Where the file system has no locks, nobody is kept out.
func Lock(dir string) (release func(), err error) {
	if err := makeDir(osFS{}, dir); err != nil {
		return nil, fmt.Errorf("checkpoint: cannot make the folder: %w; choose a folder that can be written with --checkpoint-dir", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: cannot lock the folder: %w; choose a folder that can be written with --checkpoint-dir", err)
	}
	if err := LockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("checkpoint: %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// LockFile locks an open file as long as it is open. The error is ErrLocked if another process, or another opening of the file,
// has the lock. If the file system has no locks, nobody is kept out.
func LockFile(f *os.File) error {
	_, err := tryLock(f)
	return err
}
