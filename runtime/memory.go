package runtime

import (
	"bytes"
	"math"
	"os"
	"strconv"
)

// peakResident is the most memory that this process has held, in bytes, or 0 where the system does not
// say.
func peakResident() int64 { return procField("/proc/self/status", "VmHWM:") }

// freeMemory is how many bytes this process may still take: what the machine has available, within the
// limit of its control group. It is a large number where the system does not say.
func freeMemory() int64 {
	free := int64(math.MaxInt64)
	if n := procField("/proc/meminfo", "MemAvailable:"); n > 0 {
		free = n
	}
	limit, ok := readInt("/sys/fs/cgroup/memory.max")
	if used, ok2 := readInt("/sys/fs/cgroup/memory.current"); ok && ok2 {
		cache := procField("/sys/fs/cgroup/memory.stat", "inactive_file ") >> 10 // in bytes there
		free = min(free, limit-used+cache)
	}
	return free
}

// procField reads a "NAME N kB" line of a file, in bytes; 0 where there is none.
func procField(path, name string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(b, []byte(name))
	if !ok {
		return 0
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}

func readInt(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

// fits refuses a run whose arenas this machine cannot hold.
func (r *run) fits() error {
	need, free := r.res.ArenaBytes*int64(r.res.Ranks), freeMemory()
	if need <= free || r.p.Devices != nil {
		return nil
	}
	return exitf(ExitCannot, "not enough memory: %d × %s for the ranks' arenas, %s free: %s short; compile for fewer ranks, a smaller micro_batch or with recompute",
		r.res.Ranks, size(r.res.ArenaBytes), size(free), size(need-free))
}
