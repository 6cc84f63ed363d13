//go:build cuda && linux

package gpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// gauges tell how busy the machine's GPUs are, through NVML, beside everything else: whoever wants to know gets what
// was last seen, and has it looked at again if that is old.
type gauges struct {
	all    []*cuda.Gauge
	last   atomic.Pointer[[]rt.Telemetry]
	mutex  sync.Mutex // held while somebody looks
	looked time.Time
}

// stale is how old what was seen may be: NVML itself looks a few times a second.
const stale = time.Second

// openGauges finds those of the GPUs. Without NVML, or if it does not know one, there are none: training does not need
// it.
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

// Telemetry is what was last seen.
func (m *machine) Telemetry() []rt.Telemetry {
	g := m.gauges
	if g == nil {
		return nil
	}
	if g.mutex.TryLock() {
		if time.Since(g.looked) > stale {
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

// look reads all gauges and lets go of the mutex. One that fails is of a GPU that is lost, which the run learns
// otherwise: nothing new is seen.
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
