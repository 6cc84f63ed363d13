//go:build !unix

package ckpt

// syncDir does nothing: these systems cannot sync a folder.
func syncDir(string) error { return nil }
