//go:build cuda && linux

package cuda

import (
	"errors"
	"math"
	"path/filepath"
	"testing"
)

// NVML's values are returned in our units. A value that a GPU does not report is NaN, and a failing call is
// named.
func TestNVML(t *testing.T) {
	fake(t, "new")
	n := must(loadNVML([]string{filepath.Join(fakeRoot, "new")}))(t)
	first, second := must(n.Gauge("0000:01:00.0"))(t), must(n.Gauge("0000:02:00.0"))(t)
	if got, want := must(first.Read())(t), (Telemetry{Utilization: 0.97, Memory: 5 << 30, Watts: 612.5,
		MHz: 1755}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := must(second.Read())(t); got.Utilization != 0.98 || !math.IsNaN(got.Watts) || got.MHz != 1755 {
		t.Errorf("of one that tells no power: %+v", got)
	}
	if _, err := n.Gauge("0000:03:00.0"); err == nil ||
		err.Error() != "nvmlDeviceGetHandleByPciBusId_v2 of 0000:03:00.0: nvmlReturn_t (6): Not Found" {
		t.Errorf("%v", err)
	}
	for _, call := range []string{"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo",
		"nvmlDeviceGetPowerUsage", "nvmlDeviceGetClockInfo"} {
		t.Setenv("PLANC_FAKE_FAIL", call+":15")
		var failed *Error
		if _, err := first.Read(); !errors.As(err, &failed) || failed.Call != call || failed.Text != "GPU is lost" {
			t.Errorf("%s: %v", call, err)
		}
	}
	t.Setenv("PLANC_FAKE_FAIL", "nvmlInit_v2:9")
	if _, err := loadNVML([]string{filepath.Join(fakeRoot, "new")}); err == nil {
		t.Error("an NVML that does not start is open")
	}
}
