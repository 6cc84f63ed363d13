package driver

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/report"
)

// peakResident returns the peak resident memory of this process in bytes, or 0 if the system does not report it.
func peakResident() int64 { return procField(os.DirFS("/"), "proc/self/status", "VmHWM:") }

// memoryLimit is how much more memory this process may take, and what limits it.
type memoryLimit struct {
	free int64 // bytes
	by   string
}

// freeMemory returns the tightest limit on this process's memory. It is a very large number if the system reports none.
func freeMemory(root fs.FS) memoryLimit {
	least := memoryLimit{math.MaxInt64, "the machine"}
	limits := append(controlGroups(root), addressSpace(root, "Max address space", "VmSize:", "ulimit -v"),
		addressSpace(root, "Max data size", "VmData:", "ulimit -d"))
	if n := procField(root, "proc/meminfo", "MemAvailable:"); n > 0 {
		limits = append(limits, memoryLimit{n, "the machine"})
	}
	for _, l := range limits {
		if l.by != "" && l.free < least.free {
			least = l
		}
	}
	least.free = max(0, least.free)
	return least
}

// controlGroups returns the limits of this process's control groups and their parents, of both versions. In a container
// the path may be the host's, and the group itself is at the root.
func controlGroups(root fs.FS) (limits []memoryLimit) {
	b, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		g := groupFiles{"sys/fs/cgroup", "memory.max", "memory.current", []string{"\ninactive_file ", "\nactive_file ",
			"\nslab_reclaimable "}}
		switch {
		case fields[1] == "memory":
			g = groupFiles{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
				[]string{"\ntotal_inactive_file ", "\ntotal_active_file "}}
		case fields[1] != "":
			continue
		}
		for at := path.Join("/", fields[2]); ; at = path.Dir(at) {
			if l := g.limit(root, at); l.by != "" {
				limits = append(limits, l)
			}
			if at == "/" {
				break
			}
		}
	}
	return limits
}

// groupFiles holds the names of a control group's files, and of the lines of its memory.stat that count caches.
type groupFiles struct {
	mount, limitFile, usedFile string
	caches                     []string
}

// limit returns the limit of one group; by is "" if it has none. Caches count as free, because the kernel reclaims them
// before it ends a process. Files that were read more than once, such as data and checkpoints, are in the active part.
func (g *groupFiles) limit(root fs.FS, at string) memoryLimit {
	dir := path.Join(g.mount, at)
	limit, ok := readInt(root, path.Join(dir, g.limitFile))
	used, ok2 := readInt(root, path.Join(dir, g.usedFile))
	if !ok || !ok2 {
		return memoryLimit{}
	}
	cache := int64(0)
	for _, name := range g.caches {
		cache += procField(root, path.Join(dir, "memory.stat"), name) >> 10 // in bytes there
	}
	return memoryLimit{limit - used + min(cache, used), "the control group's limit of " + report.Size(limit)}
}

// addressSpace returns what a resource limit leaves beyond what this process has taken; by is "" if there is no limit.
func addressSpace(root fs.FS, name, taken, by string) memoryLimit {
	b, _ := fs.ReadFile(root, "proc/self/limits")
	_, rest, ok := bytes.Cut(b, []byte(name))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return memoryLimit{}
	}
	limit, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil { // unlimited
		return memoryLimit{}
	}
	return memoryLimit{limit - procField(root, "proc/self/status", taken), by}
}

// procField reads a "NAME N kB" line of a file, in bytes. It returns 0 if there is none.
func procField(root fs.FS, path, name string) int64 {
	b, err := fs.ReadFile(root, path)
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

func readInt(root fs.FS, path string) (int64, bool) {
	b, err := fs.ReadFile(root, path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

// fits refuses a run whose arenas do not fit into memory. Otherwise Go would end the process with a misleading status.
func (r *run) fits() error {
	if r.p.Devices != nil {
		r.checkpoints.prepareCopy(0)
		return nil
	}
	need, limit := r.res.ArenaBytes*int64(r.res.Ranks), freeMemory(os.DirFS("/"))
	const more = "compile for fewer ranks, a smaller micro_batch or with recompute"
	if need > limit.free {
		return exit.Errorf(exit.Cannot, "not enough memory: %d × %s for the ranks' arenas, %s free within %s: %s "+
			"short; "+more, r.res.Ranks, report.Size(r.res.ArenaBytes), report.Size(limit.free), limit.by,
			report.Size(need-limit.free))
	}
	r.checkpoints.prepareCopy(limit.free - need)
	if err := reserve(need + r.res.CopyBytes); err != nil {
		return exit.Errorf(exit.Cannot, "not enough memory: %d × %s for the ranks' arenas, and the system refuses %s: "+
			"%w; "+more,
			r.res.Ranks, report.Size(r.res.ArenaBytes), report.Size(need), err)
	}
	return nil
}
