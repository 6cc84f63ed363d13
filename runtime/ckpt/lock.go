package ckpt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// lockName is the file in a folder of checkpoints that a run locks. The file remains, but the lock ends with the
// process.
const lockName = ".lock"

// ErrLocked is returned by Lock and LockFile if another run has the lock.
var ErrLocked = errors.New("another run has locked it")

// Lock creates a folder for checkpoints and keeps other runs out of it until release is called or the process ends. A
// file system without locks keeps nobody out.
func Lock(dir string) (release func(), err error) {
	if IsURL(dir) {
		return lockObjects(dir)
	}
	if err := makeDir(osFS{}, dir); err != nil {
		return nil, fmt.Errorf("checkpoint: cannot create the folder: %w; choose a folder that can be written with "+
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

// tryWrite creates and removes a folder in dir, as Save will, so that missing write permission is found before
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

// LockFile locks an open file until it is closed. It returns ErrLocked if another process, or another open file
// descriptor, has the lock. A file system without locks keeps nobody out.
func LockFile(f *os.File) error {
	_, err := tryLock(f)
	return err
}
