//go:build !linux

package ckpt

import "os"

// startWriting does nothing: the system decides when it writes.
func startWriting(*os.File, int64, int64) {}
