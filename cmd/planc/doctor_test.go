package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// Without Go, or without a cache that can be written, training does not work, and doctor says why and what to do.
func TestDoctorFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, value, want string }{
		{"PATH", t.TempDir(), "planc: training on this CPU does not work: go: go is not on PATH"},
		{"XDG_CACHE_HOME", filepath.Join(file, "below"), "planc: training on this CPU does not work: cache: "},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("HOME", os.Getenv("XDG_CACHE_HOME"))
			t.Setenv(c.variable, c.value)
			code, out, errs := call("doctor")
			if code != exitFailed || !strings.HasPrefix(errs, c.want) || !strings.Contains(out, " failed ") {
				t.Errorf("exit %d\n%s\n%s", code, out, errs)
			}
			code, out, _ = call("doctor", "--json")
			if code != exitFailed || !strings.Contains(out, `"works": false`) || strings.Contains(out, `"error"`) {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}

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

// What the system says of itself is read where it says it, and what it does not say is nothing.
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
	m := inspectMachine(root)
	if m.CPU != "Some CPU @ 2 GHz" || m.ISA != "avx2" || m.Memory != 2<<30 || m.Available != 2<<30 ||
		len(m.GPUs) != 2 || m.Driver != "550.54.15" || m.Cores < 1 {
		t.Errorf("%+v", m)
	}
	root["sys/fs/cgroup/memory.max"] = &fstest.MapFile{Data: []byte("max\n")}
	if m := inspectMachine(root); m.Memory != 8<<30 || m.Available != 4<<30 {
		t.Errorf("without a limit: %+v", m)
	}
	if m := inspectMachine(fstest.MapFS{}); m.CPU != "" || m.Memory != 0 || len(m.GPUs) != 0 || m.Driver != "" {
		t.Errorf("of nothing: %+v", m)
	}
}
