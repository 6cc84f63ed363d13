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

// ErrLocked is Lock's error where another run has the folder.
var ErrLocked = errors.New("another run saves its checkpoints there")

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
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("checkpoint: %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}
