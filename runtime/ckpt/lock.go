package ckpt

import (
	"crypto/rand"
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
		return nil, fmt.Errorf("checkpoint: cannot make the folder: %w; choose a folder that can be written with "+
			"--checkpoint-dir", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: cannot lock the folder: %w; choose a folder that can be written with "+
			"--checkpoint-dir", err)
	}
	if err := LockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("checkpoint: %s: %w", dir, err)
	}
	if err := tryWrite(osFS{}, dir); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// tryWrite makes and removes a folder in dir, as Save will, so that a folder that cannot be written is found before
// training.
func tryWrite(fsys fileSystem, dir string) error {
	probe := filepath.Join(dir, tmpPrefix+"probe-"+rand.Text()[:8])
	err := fsys.Mkdir(probe)
	if err == nil {
		err = fsys.RemoveAll(probe)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: cannot write in the folder: %w; choose a folder that can be written with "+
			"--checkpoint-dir", err)
	}
	return nil
}

// LockFile locks an open file as long as it is open. The error is ErrLocked if another process, or another opening of
// the file, has the lock. If the file system has no locks, nobody is kept out.
func LockFile(f *os.File) error {
	_, err := tryLock(f)
	return err
}
