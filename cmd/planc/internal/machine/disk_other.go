//go:build !linux && !darwin

package machine

// freeDisk returns unknown on this platform.
func freeDisk(string) (bytes int64, known bool) { return 0, false }
