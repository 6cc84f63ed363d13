package num

import "github.com/planc-dev/planc/runtime/vec"

// accumulateBlock is how many numbers are converted at a time, so that they stay in the L1 cache.
const accumulateBlock = 2048

// Accumulate is
//
//	for i := range grad { grad[i] += x[i] }
//
// in float32, of numbers however they are stored, or as float64.
func Accumulate[G, X Stored](grad []G, x []X) {
	if wide, ok := any(grad).([]float64); ok {
		for i, v := range any(x).([]float64) {
			wide[i] += v
		}
		return
	}
	var sum, more [accumulateBlock]float32
	for len(grad) > 0 {
		n := min(len(grad), accumulateBlock)
		Load(sum[:], grad[:n])
		Load(more[:], x[:n])
		for i := vec.AddTo(sum[:n], more[:n]); i < n; i++ {
			sum[i] += more[i]
		}
		Store(grad[:n], sum[:n])
		grad, x = grad[n:], x[n:]
	}
}
