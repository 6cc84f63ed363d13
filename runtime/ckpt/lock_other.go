//go:build !unix || solaris || aix

package ckpt

import "os"

// lockFile does nothing: these systems have no flock.
func lockFile(*os.File) error { return nil }
