package runtime

// Telemetry is the utilization of a device. A value that is not available is NaN.
type Telemetry struct {
	Utilization float64 // fraction of the time in which it is busy
	Memory      float64 // bytes in use, by all processes
	Watts       float64
	MHz         float64
}

// TelemetrySource is implemented by [Devices] with telemetry. Telemetry does not wait: it returns the latest values of
// each device, or nothing if there are none. They are written to the metrics of steps.
type TelemetrySource interface {
	Telemetry() []Telemetry
}

// telemetry writes the devices' telemetry, if they have it.
func (m *metrics) telemetry(d Devices) {
	o, ok := d.(TelemetrySource)
	if !ok {
		return
	}
	all := o.Telemetry()
	if len(all) == 0 {
		return
	}
	for _, k := range []struct {
		name string
		of   func(*Telemetry) float64
	}{
		{"gpu_util", func(t *Telemetry) float64 {
			return t.Utilization
		}}, {"gpu_memory_bytes", func(t *Telemetry) float64 {
			return t.Memory
		}},
		{"gpu_watts", func(t *Telemetry) float64 {
			return t.Watts
		}}, {"gpu_mhz", func(t *Telemetry) float64 {
			return t.MHz
		}},
	} {
		m.key(k.name)
		for i := range all {
			m.line = append(m.line, "[,"[min(i, 1)])
			if x := k.of(&all[i]); x == x {
				m.line = appendShort(m.line, x)
			} else {
				m.line = append(m.line, "null"...)
			}
		}
		m.line = append(m.line, ']')
	}
}
