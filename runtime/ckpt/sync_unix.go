//go:build unix

package ckpt

import (
	"errors"
	"os"
	"syscall"
)

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // this file system does not support fsync on directories
	}
	return err
}
