//go:build linux || darwin

package machine

import "syscall"

// freeDisk returns the bytes that this user can still write to a folder's disk.
func freeDisk(dir string) (bytes int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
