package runtime

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/rank"
)

// --param-norms writes the norms of parameters and gradients after the steps that it names, on every plan. The squares
// of the gradients' norms add up to that of grad_norm.
func TestParamNorms(t *testing.T) {
	norm := func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v * v
		}
		return math.Sqrt(sum)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }
	for name, p := range map[string]*rank.Program{"1": bigram[float64](1, 0), "4": bigram[float64](4, 0),
		"4 sharded": bigram[float64](4, 1), "hybrid": hybrid[float64]()} {
		dir := t.TempDir()
		want := map[string]map[int]float64{}
		keep := func(tag string, step int, x []float64) {
			if want[tag] == nil {
				want[tag] = map[int]float64{}
			}
			want[tag][step] = norm(x)
		}
		_, err := train(t, p, dir, ParamNorms(3), OnTensors(func(step int, x *driver.Tensors) error {
			x.Params(func(param string, _ []int64, v []float64) { keep("weight_norms/"+param, step, v) })
			x.Grads(func(param string, _ []int64, v []float64) { keep("grad_norms/"+param, step, v) })
			return nil
		}))
		must(t, err)
		logged := loggedScalars(t, dir)
		for tag, steps := range want {
			var at []int
			for step, x := range logged[tag] {
				at = append(at, step)
				if !near(x, steps[step]) {
					t.Errorf("%s: %s of step %d is %v, want %v", name, tag, step, x, steps[step])
				}
			}
			slices.Sort(at)
			if !slices.Equal(at, []int{3, 6, 9, 12}) {
				t.Errorf("%s: %s has steps %v", name, tag, at)
			}
		}
		for step := 3; step <= 12; step += 3 {
			parts := []float64{logged["grad_norms/w"][step], logged["grad_norms/b"][step]}
			if whole := logged["grad_norm"][step]; !near(norm(parts), whole) {
				t.Errorf("%s: step %d has grad_norm %v of %v", name, step, whole, parts)
			}
		}
	}
}
