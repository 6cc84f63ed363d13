package report

import (
	"math"
	"strconv"

	"github.com/planc-dev/planc/runtime/timeline"
)

// Times is where the time of a step went.
type Times struct {
	Parts [timeline.Parts]float64 // seconds of each part, mean over the ranks; they add up to the step's time
	Busy  []float64               // seconds of each rank in its own work: passes and update
	Wait  []float64               // seconds that each rank's collectives and receives waited for other ranks
	Skew  float64                 // of the slowest rank: busy time over the median of its stage, minus 1
}

// times writes where a step's time went; nothing if that was not measured.
func (m *Metrics) times(t *Times) {
	if t == nil {
		return
	}
	m.key("time_s")
	for p := range timeline.Parts {
		x := micros(t.Parts[p])
		m.line = append(append(append(m.line, "{,"[min(p, 1)], '"'), p.String()...), `":`...)
		m.line = strconv.AppendFloat(m.line, x, 'f', -1, 64)
		m.events.part("time_s", p.String(), x)
	}
	m.line = append(m.line, '}')
	m.list("busy_s", t.Busy)
	m.list("wait_s", t.Wait)
	m.key("skew")
	m.line = appendShort(m.line, t.Skew)
	m.events.scalar("skew", math.Round(t.Skew*1e4)/1e4)
}

// micros rounds seconds to microseconds.
func micros(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// list writes a list of seconds, one per rank.
func (m *Metrics) list(name string, all []float64) {
	m.key(name)
	m.line = append(m.line, '[')
	for i, x := range all {
		if i > 0 {
			m.line = append(m.line, ',')
		}
		x = micros(x)
		m.line = strconv.AppendFloat(m.line, x, 'f', -1, 64)
		m.events.element(name, i, x)
	}
	m.line = append(m.line, ']')
}
