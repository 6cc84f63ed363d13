package machine

import (
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Machine describes this machine, as the system reports it. Unknown values are zero.
type Machine struct {
	CPU       string   // model name
	Cores     int      // cores that Go programs can use
	Memory    int64    // bytes of the machine, or of this container
	Available int64    // unused bytes
	ISA       string   // widest vector instructions: avx512, avx2, neon; "" if unknown
	GPUs      []string // device files
	Driver    string   // version of NVIDIA's kernel driver
}

// Inspect reads the description of the machine whose file system is root.
func Inspect(root fs.FS) Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0)}
	cpu := readKeyValues(root, "proc/cpuinfo")
	m.CPU = cpu["model name"]
	flags := strings.Fields(cpu["flags"])
	m.ISA = isaOf(flags)
	if m.ISA == "" && runtime.GOARCH == "arm64" {
		m.ISA = "neon" // every 64-bit ARM CPU has it
	}
	memory := readKeyValues(root, "proc/meminfo")
	m.Memory, m.Available = kilobytes(memory["MemTotal"]), kilobytes(memory["MemAvailable"])
	if limit := cgroupLimit(root); limit > 0 && limit < m.Memory {
		m.Memory, m.Available = limit, min(limit, m.Available)
	}
	m.GPUs, _ = fs.Glob(root, "dev/nvidia[0-9]*")
	m.Driver = driverOf(root)
	return m
}

// readKeyValues reads a file of lines such as "MemTotal: 5 kB". The first line of a key counts.
func readKeyValues(root fs.FS, file string) map[string]string {
	out := map[string]string{}
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if ok && out[key] == "" {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}

// isaOf returns the widest vector extension among the flags of a CPU.
func isaOf(flags []string) string {
	for _, isa := range []struct{ flag, name string }{{"avx512f", "avx512"}, {"avx2", "avx2"}, {"asimd", "neon"}} {
		if slices.Contains(flags, isa.flag) {
			return isa.name
		}
	}
	return ""
}

func kilobytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
	if err != nil || n > math.MaxInt64>>10 {
		return 0
	}
	return n << 10
}

// cgroupLimit returns the memory limit of the container in bytes; 0 if there is none.
func cgroupLimit(root fs.FS) int64 {
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if data, err := fs.ReadFile(root, file); err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// driverOf returns the version of NVIDIA's kernel driver: the first word of digits and dots in the first line of its
// version file; "" without a driver, "unknown" if there is no such word.
func driverOf(root fs.FS) string {
	data, err := fs.ReadFile(root, "proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(data), "\n")
	for _, w := range strings.Fields(first) {
		if strings.Count(w, ".") >= 1 && strings.Trim(w, "0123456789.") == "" {
			return w
		}
	}
	return "unknown"
}
