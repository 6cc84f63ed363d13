//go:build cuda && linux

package gpu

import (
	"os"
	"testing"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// A machine reports the utilization of each of its GPUs, and reads it again when the values are old.
func TestTelemetry(t *testing.T) {
	if why := emulate.Skipped(); why != "" || os.Getenv(inside) == "" {
		t.Skip(why)
	}
	driver, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{gauges: openGauges(gpus)}
	all := m.Telemetry()
	if len(all) != 4 {
		t.Fatalf("%+v", all)
	}
	for i, u := range all {
		if u.Utilization != 0.75 || u.Memory != 1<<30 || u.Watts != 500+float64(i+1)/1000 || u.MHz != 1500 {
			t.Errorf("GPU %d: %+v", i, u)
		}
	}
	m.gauges.mutex.Lock()
	old := time.Now().Add(-2 * maxAge)
	m.gauges.looked = old
	m.gauges.mutex.Unlock()
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(time.Millisecond) {
		m.Telemetry()
		m.gauges.mutex.Lock()
		looked := m.gauges.looked
		m.gauges.mutex.Unlock()
		if looked.After(old) {
			return
		}
	}
	t.Error("nobody has looked again")
}
