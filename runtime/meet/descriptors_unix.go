//go:build unix

package meet

import (
	"os"
	"syscall"
)

// descriptorLimit is how many descriptors the process may have, 0 if the system does not say.
func descriptorLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > 1<<30 {
		return 0
	}
	return int(l.Cur)
}

// descriptorsOpen is how many it has, 0 if the system does not say.
func descriptorsOpen() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
