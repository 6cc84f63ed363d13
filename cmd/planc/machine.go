package main

import (
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// machine is what the system says of itself; what it does not say is zero.
type machine struct {
	CPU       string // as its maker calls it
	Cores     int    // that Go programs use here
	Memory    int64  // bytes of the machine, or of the container that this is
	Available int64  // bytes of it that nobody uses now
	ISA       string // the widest vectors: avx512, avx2, neon; "" if unknown
	GPUs      []string
	Driver    string // of NVIDIA's GPUs
}

// inspectMachine reads the machine; root is its file system.
func inspectMachine(root fs.FS) machine {
	m := machine{Cores: runtime.GOMAXPROCS(0)}
	cpu := readKeyValues(root, "proc/cpuinfo")
	m.CPU = cpu["model name"]
	flags := strings.Fields(cpu["flags"])
	m.ISA = isaOf(flags)
	if m.ISA == "" && runtime.GOARCH == "arm64" {
		m.ISA = "neon" // of every 64-bit ARM
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

// readKeyValues reads lines such as "MemTotal: 5 kB"; of several with one key the first counts.
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

// isaOf is the widest vector extension among the flags of a CPU.
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

// cgroupLimit is the memory that a container may use; 0 if there is no limit.
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

// driverOf is the version of NVIDIA's kernel driver: the word before the last date of the first line.
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
