//go:build linux

package search

import (
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/ir/spec"
)

// The most expensive known jobs among those that are accepted: sizes with as many divisors as the limits allow. They
// need several GiB. go test -bench Largest -benchtime 1x prints CPU seconds and the process's peak memory so far, in
// MiB.
func BenchmarkLargestDense(b *testing.B) {
	cfg := llamaConfig(1024, 1024, 16, 16, 2816, 32000, 4096)
	benchmarkLargest(b, problem(cluster(b, "dgx-h100", 15015, 0), cfg, 2048, 73513440, mixed))
}

func BenchmarkLargestExperts(b *testing.B) {
	cfg := llamaConfig(1008, 4096, 48, 48, 12288, 151936, 40960)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 240, 8, 1536, true
	benchmarkLargest(b, problem(cluster(b, "dgx-h100", 13860, 0), cfg, 4096, 665280, mixed))
}

// benchmarkLargest searches, and reports CPU time and memory.
func benchmarkLargest(b *testing.B, p *Problem) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	benchmarkSearch(b, p)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(cpu.Seconds()/float64(b.N), "CPU-s")
	b.ReportMetric(float64(after.Maxrss)/(1<<10), "peak-MiB") // ru_maxrss counts KiB on Linux
}
