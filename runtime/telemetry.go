package runtime

// Telemetry is how busy a device is; NaN is what nobody tells.
type Telemetry struct {
	Utilization float64 // part of the time in which it does anything
	Memory      float64 // bytes that are taken, by all processes
	Watts       float64
	MHz         float64
}

// TelemetrySource are [Devices] that tell how busy they are. Telemetry does not wait: it has what was last seen, of
// each device, nothing where nothing was. Metrics of steps have it.
type TelemetrySource interface {
	Telemetry() []Telemetry
}

// telemetry writes how busy devices are, if they tell.
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
