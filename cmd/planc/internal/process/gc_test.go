package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// However little is there, garbage is not collected before planc takes half a gigabyte.
func TestCollectLate(t *testing.T) {
	percent := debug.SetGCPercent(gcPercent)
	defer debug.SetGCPercent(percent)
	read := func(name string) uint64 {
		samples := []metrics.Sample{{Name: name}}
		metrics.Read(samples)
		return samples[0].Value.Uint64()
	}
	ballast := DelayGC()
	runtime.GC()
	if goal := read("/gc/heap/goal:bytes"); goal < gcStart {
		t.Errorf("garbage is collected again at %d bytes, want %d at least", goal, gcStart)
	}
	runtime.KeepAlive(ballast)
}
