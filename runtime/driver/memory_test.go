package driver

import (
	"bytes"
	"errors"
	"math"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

func TestFreeMemory(t *testing.T) {
	const gib = 1 << 30
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
	for name, test := range map[string]struct {
		files fstest.MapFS
		want  memoryLimit
	}{
		"nothing is known": {fstest.MapFS{}, memoryLimit{math.MaxInt64, "the machine"}},
		"the machine":      {fstest.MapFS{"proc/meminfo": meminfo}, memoryLimit{8 * gib, "the machine"}},
		"a group of version 2, without its cache": {fstest.MapFS{"proc/meminfo": meminfo,
			"proc/self/cgroup":         file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("4294967296\n"), "sys/fs/cgroup/memory.current": file("3221225472\n"),
			"sys/fs/cgroup/memory.stat": file("file 7\ninactive_file 1073741824\n")}, memoryLimit{2 * gib,
			"the control group's limit of 4.0 GiB"}},
		"a group whose cache is of files that were read twice": {fstest.MapFS{"proc/meminfo": meminfo,
			"proc/self/cgroup":         file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("4294967296\n"), "sys/fs/cgroup/memory.current": file("4294967296\n"),
			"sys/fs/cgroup/memory.stat": file("anon 536870912\ninactive_anon 9\nactive_anon 9\ninactive_file " +
				"536870912\nactive_file 2147483648\nslab_reclaimable 536870912\n")},
			memoryLimit{3 * gib, "the control group's limit of 4.0 GiB"}},
		"a group of version 1 with cache": {fstest.MapFS{"proc/meminfo": meminfo,
			"proc/self/cgroup":                           file("4:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("4294967296\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("4294967296\n"),
			"sys/fs/cgroup/memory/memory.stat": file("cache 1\ninactive_file 1\nactive_file 1\ntotal_cache " +
				"1\ntotal_inactive_file 1073741824\ntotal_active_file 2147483648\n")},
			memoryLimit{3 * gib, "the control group's limit of 4.0 GiB"}},
		"a group above it": {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("1:cpu:/x\n0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/b/memory.current": file("0\n"),
			"sys/fs/cgroup/a/memory.max": file("2147483648\n"), "sys/fs/cgroup/a/memory.current": file("1073741824\n")},
			memoryLimit{gib, "the control group's limit of 2.0 GiB"}},
		"a group of version 1": {fstest.MapFS{"proc/meminfo": meminfo,
			"proc/self/cgroup": file("4:memory:/job\n0::/\n"),
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": file("3221225472\n"),
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes": file("1073741824\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     file("9223372036854771712\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes":     file("1\n")},
			memoryLimit{2 * gib, "the control group's limit of 3.0 GiB"}},
		"a group that is over its limit": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"),
			"sys/fs/cgroup/memory.max":     file("1\n"),
			"sys/fs/cgroup/memory.current": file("3221225472\n")}, memoryLimit{0, "the control group's limit of 1 B"}},
		"ulimit": {fstest.MapFS{"proc/meminfo": meminfo,
			"proc/self/status": file("VmSize: 1048576 kB\nVmData: 524288 kB\n"),
			"proc/self/limits": file("Max data size             unlimited            unlimited            bytes\nMax " +
				"address space         2147483648           unlimited            bytes\n")},
			memoryLimit{gib, "ulimit -v"}},
		"ulimit of data": {fstest.MapFS{"proc/meminfo": meminfo,
			"proc/self/status": file("VmSize: 1048576 kB\nVmData: 524288 kB\n"),
			"proc/self/limits": file("Max data size             1073741824            unlimited            bytes\n")},
			memoryLimit{gib / 2, "ulimit -d"}},
	} {
		if got := freeMemory(test.files); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// What the system refuses is refused with the numbers, before Go would end the process.
func TestReserve(t *testing.T) {
	if err := reserve(1 << 46); !errors.Is(err, syscall.ENOMEM) {
		t.Skipf("64 TiB: %v", err)
	}
	if err := errors.Join(reserve(1<<20), reserve(0)); err != nil {
		t.Error(err)
	}
}

// Checkpoints are written while training continues if the copy of the state fits into memory.
func TestCopyThatDoesNotFit(t *testing.T) {
	p := &rank.Program{ProgramData: program.Program{Elem: program.F32, Mesh: []program.Axis{{Name: "dp", Size: 1}},
		Params: []program.Param{{Name: "w", Layers: 1, Dims: []program.Dim{{Name: "out", Size: 512}},
			Places: []program.Place{{}}}},
		Stages: []program.Stage{{Buckets: []program.Bucket{{Elems: 512, Shard: -1, Pieces: []program.Piece{{}}}},
			Arena: program.Arena{Size: 3 << 11, Params: program.Region{Size: 1 << 11},
				Moment1: program.Region{Offset: 1 << 11, Size: 1 << 11},
				Moment2: program.Region{Offset: 2 << 11, Size: 1 << 11}}}}}}
	for free, want := range map[int64]string{
		6144: "checkpoints: written while training continues, from a copy of 6.0 KiB\n",
		6143: "warning: checkpoints are written between two steps, because their copy of the state needs 6.0 KiB, " +
			"and 6.0 KiB of memory are free\n",
		1 << 10: "warning: checkpoints are written between two steps, because their copy of the state needs 6.0 KiB, " +
			"and 1.0 KiB of memory are free\n",
	} {
		var out bytes.Buffer
		r := &saver{job: &job{p: p, team: &launch.Team{Launch: launch.Alone(1)},
			outputs: outputs{report: report.NewPrinter(&out, false, nil)}}}
		r.s.Train.Checkpoint = program.CheckpointSettings{Every: 5, Async: true}
		r.prepareCopy(free)
		if out.String() != want || r.inBackground != (free >= 6144) {
			t.Errorf("%d bytes free: %t, %q", free, r.inBackground, out.String())
		}
		out.Reset()
		r.s.Train.Checkpoint.Every = 0
		r.prepareCopy(free)
		if out.Len() > 0 || r.inBackground {
			t.Errorf("a run that saves at its end only: %t, %q", r.inBackground, out.String())
		}
	}
}
