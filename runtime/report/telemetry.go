package report

import (
	"math"
	"strconv"
)

// Telemetry is the utilization of a device. A value that is not available is NaN.
type Telemetry struct {
	Utilization float64 // fraction of the time in which it is busy
	Memory      float64 // bytes in use, by all processes
	Watts       float64
	MHz         float64
}

// telemetry writes the telemetry of devices; nothing if there is none.
func (m *Metrics) telemetry(all []Telemetry) {
	if len(all) == 0 {
		return
	}
	for _, k := range []struct {
		name  string
		value func(*Telemetry) float64
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
			if x := k.value(&all[i]); x == x {
				m.line = appendShort(m.line, x)
				m.events.element(k.name, i, x)
			} else {
				m.line = append(m.line, "null"...)
			}
		}
		m.line = append(m.line, ']')
	}
}

// appendShort writes a number rounded to four decimals, without trailing zeros.
func appendShort(line []byte, x float64) []byte {
	return strconv.AppendFloat(line, math.Round(x*1e4)/1e4, 'f', -1, 64)
}
