//go:build unix

package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	err = syncFile(d)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // this file system cannot sync a folder
	}
	return err
}

// othersWrite says how other users can change what is in a folder; "" if they cannot.
func othersWrite(info fs.FileInfo) string {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Sprintf("has mode %04o, so that other users can write to it", mode)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d, and planc runs as user %d", s.Uid, os.Geteuid())
	}
	return ""
}
