package ckpt

import (
	"os"
	"syscall"
)

// rangeWrite is Linux's SYNC_FILE_RANGE_WRITE.
const rangeWrite = 2

// startWriting asks the system to write a part of a file to the disk, and does not wait for it. Failures do not matter:
// Sync reports them.
func startWriting(f *os.File, at, bytes int64) {
	_ = syscall.SyncFileRange(int(f.Fd()), at, bytes, rangeWrite)
}
