//go:build !unix

package build

import "io/fs"

// syncFolder does nothing: these systems cannot sync a folder.
func syncFolder(string) error { return nil }

// othersWrite returns "": the cache lies in the user's profile, and mode bits say nothing about who can write there.
func othersWrite(fs.FileInfo) string { return "" }
