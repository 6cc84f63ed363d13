package runtime

import (
	"math"
	"slices"
	"time"
)

// maxTimes bounds how many step times the median is taken of.
const maxTimes = 4096

// median of the kept step times, NaN for none.
func median(times []float64) float64 {
	if len(times) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

// typicalSeconds is the median of the last steps' times, of which there are keptTypical at most.
func (r *run) typicalSeconds() float64 {
	var last [typicalSteps]float64
	sorted := last[:copy(last[:], r.times[max(0, len(r.times)-typicalSteps):])]
	if len(sorted) == 0 {
		return math.NaN()
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// typicalSteps is how many steps tell how long the next ones take.
const typicalSteps = 20

// timeLeft is the time that the remaining steps will take, if the last one is all that is known.
func (r *run) timeLeft(last float64) time.Duration {
	m := r.typicalSeconds()
	if math.IsNaN(m) {
		m = last
	}
	return time.Duration(m * float64(r.total-r.done.step) * float64(time.Second))
}
