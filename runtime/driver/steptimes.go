package driver

import (
	"math"
	"slices"
	"time"
)

// maxTimes bounds the number of step times from which the median is computed.
const maxTimes = 4096

// median returns the median of step times; NaN if there are none.
func median(times []float64) float64 {
	if len(times) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

// typicalSeconds returns the median of the last typicalSteps step times; NaN if there are none.
func (r *recorder) typicalSeconds() float64 {
	var last [typicalSteps]float64
	sorted := last[:copy(last[:], r.times[max(0, len(r.times)-typicalSteps):])]
	if len(sorted) == 0 {
		return math.NaN()
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// typicalSteps is the number of recent steps from which the time of the next ones is estimated.
const typicalSteps = 20

// timeLeft estimates the time of the remaining steps. last is the time of the last step, for a run that has no others.
func (r *recorder) timeLeft(last float64) time.Duration {
	m := r.typicalSeconds()
	if math.IsNaN(m) {
		m = last
	}
	return time.Duration(m * float64(r.total-r.done.step) * float64(time.Second))
}
