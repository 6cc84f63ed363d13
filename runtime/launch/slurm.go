package launch

import (
	"strconv"
	"strings"
)

// firstHost returns the first host of SLURM's compact list: n01 of n[01-04,7],m3.
func firstHost(list string) string {
	prefix, rest, bracket := strings.Cut(list, "[")
	if comma := strings.IndexByte(prefix, ','); comma >= 0 || !bracket {
		host, _, _ := strings.Cut(list, ",")
		return host
	}
	inside, rest, closed := strings.Cut(rest, "]")
	if !closed {
		return ""
	}
	first := inside[:len(inside)-len(strings.TrimLeft(inside, "0123456789"))]
	suffix, _, _ := strings.Cut(rest, ",")
	if strings.Contains(suffix, "[") { // several dims: n[1-2]m[3-4]
		suffix = firstHost(rest)
	}
	if first == "" {
		return ""
	}
	return prefix + first + suffix
}

// slurmPort returns a port that jobs do not share, computed as in Lightning: 15000 plus the last four digits of the
// job's number.
func slurmPort(job string) string {
	n, err := strconv.Atoi(job[max(0, len(job)-4):])
	if err != nil {
		return ""
	}
	return strconv.Itoa(15000 + n)
}
