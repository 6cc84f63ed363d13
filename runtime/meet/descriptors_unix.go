//go:build unix

package meet

import (
	"os"
	"syscall"
)

// descriptorLimit returns the maximum number of descriptors of the process, 0 if unknown.
func descriptorLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > 1<<30 {
		return 0
	}
	return int(l.Cur)
}

// descriptorsOpen returns the number of open descriptors, 0 if unknown.
func descriptorsOpen() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
