//go:build cuda && linux

package gpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// gauges reads the GPUs' utilization through NVML in the background. Readers get the last values and
// trigger a new reading if these are old.
type gauges struct {
	all    []*cuda.Gauge
	last   atomic.Pointer[[]rt.Telemetry]
	mutex  sync.Mutex // held during a reading
	looked time.Time
}

// maxAge is the age from which values are read again: NVML itself samples a few times a second.
const maxAge = time.Second

// openGauges opens the GPUs' gauges. It returns nil without NVML or if NVML does not know a GPU: training
// does not need it.
func openGauges(gpus []cuda.Device) *gauges {
	nvml, err := cuda.OpenNVML()
	if err != nil {
		return nil
	}
	g := &gauges{}
	for _, d := range gpus {
		gauge, err := nvml.Gauge(d.Bus)
		if err != nil {
			return nil
		}
		g.all = append(g.all, gauge)
	}
	g.mutex.Lock()
	g.look()
	return g
}

// Telemetry returns the last values.
func (m *machine) Telemetry() []rt.Telemetry {
	g := m.gauges
	if g == nil {
		return nil
	}
	if g.mutex.TryLock() {
		if time.Since(g.looked) > maxAge {
			go g.look()
		} else {
			g.mutex.Unlock()
		}
	}
	if seen := g.last.Load(); seen != nil {
		return *seen
	}
	return nil
}

// look reads all gauges and unlocks the mutex. If one fails, its GPU is lost, and there are no values; the
// run learns of this otherwise.
func (g *gauges) look() {
	defer g.mutex.Unlock()
	g.looked = time.Now()
	var seen []rt.Telemetry
	for _, gauge := range g.all {
		t, err := gauge.Read()
		if err != nil {
			g.last.Store(nil)
			return
		}
		seen = append(seen, rt.Telemetry(t))
	}
	g.last.Store(&seen)
}
