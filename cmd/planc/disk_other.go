//go:build !linux && !darwin

package main

// freeDisk returns unknown on this platform.
func freeDisk(string) (bytes int64, known bool) { return 0, false }
