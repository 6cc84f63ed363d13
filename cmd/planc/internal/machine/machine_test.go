package machine

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Free disk space for checkpoints is judged by its size.
func TestDiskFinding(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		known bool
		want  string
	}{{0, false, "ok free space here is unknown"},
		{1 << 30, true, "missing 1.0 GiB free here: only checkpoints of small models"},
		{1 << 40, true, "ok 1.00 TiB free here, for checkpoints: "}} {
		f := diskFinding(func(string) (int64, bool) { return c.bytes, c.known })
		if text := f.State + " " + f.Value + ": " + f.Fix; f.Name != "disk" || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s\nwant %s", text, c.want)
		}
	}
}

// The machine is described by the files in which the system describes itself; missing files leave values empty.
func TestLook(t *testing.T) {
	root := fstest.MapFS{
		"proc/cpuinfo": {Data: []byte("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu " +
			"avx2 fma\nprocessor\t: 1\nmodel name\t: Other\n")},
		"proc/meminfo": {Data: []byte("MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:    " +
			"4194304 kB\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("2147483648\n")},
		"dev/nvidia0":              {},
		"dev/nvidia1":              {},
		"dev/nvidiactl":            {},
		"proc/driver/nvidia/version": {Data: []byte("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue " +
			"Mar  5 22:23:56 UTC 2024\nGCC version: 12\n")},
	}
	m := Inspect(root)
	if m.CPU != "Some CPU @ 2 GHz" || m.ISA != "avx2" || m.Memory != 2<<30 || m.Available != 2<<30 ||
		len(m.GPUs) != 2 || m.Driver != "550.54.15" || m.Cores < 1 {
		t.Errorf("%+v", m)
	}
	root["sys/fs/cgroup/memory.max"] = &fstest.MapFile{Data: []byte("max\n")}
	if m := Inspect(root); m.Memory != 8<<30 || m.Available != 4<<30 {
		t.Errorf("without a limit: %+v", m)
	}
	if m := Inspect(fstest.MapFS{}); m.CPU != "" || m.Memory != 0 || len(m.GPUs) != 0 || m.Driver != "" {
		t.Errorf("of nothing: %+v", m)
	}
}
