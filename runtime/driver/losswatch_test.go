package driver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// highs are the steps, from 1, whose losses are high.
func highs(losses []float64) (steps []int) {
	var w lossWatch
	for i, x := range losses {
		if w.add(x) {
			steps = append(steps, i+1)
		}
	}
	return steps
}

// falling is a usual training: a loss that falls from 5.5 to 3, with noise of a relative deviation.
func falling(steps int, noise func() float64) []float64 {
	out := make([]float64, steps)
	for i := range out {
		out[i] = (3 + 2.5*math.Exp(-float64(i)/200)) * (1 + noise())
	}
	return out
}

func TestUsualLossesAreNotHigh(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rare := map[string]int{"Gaussian": 0, "skewed": 2}
	for _, part := range []float64{0, 0.001, 0.01, 0.05} {
		for name, noise := range map[string]func() float64{
			"Gaussian": func() float64 { return part * random.NormFloat64() },
			"skewed":   func() float64 { return part * (random.ExpFloat64() - 1) },
		} {
			if got := highs(falling(20000, noise)); len(got) > rare[name] {
				t.Errorf("%s noise of %g: %v are high", name, part, got)
			}
		}
	}
	for name, losses := range map[string][]float64{
		"constant": slices.Repeat([]float64{5.5}, 200),
		"learned by heart": append(falling(300, func() float64 {
			return 0
		}), slices.Repeat([]float64{1e-4, 4e-3, 2e-4}, 100)...),
		"a first loss that is lucky":   append([]float64{2.2}, slices.Repeat([]float64{2.9, 2.4, 3.1}, 100)...),
		"a first loss of another kind": append([]float64{0.3}, slices.Repeat([]float64{1.5, 0.9, 1.7}, 100)...),
		"warm-up": append([]float64{10.9, 10.8, 9.8, 9.2, 10.4, 11.6, 10.1},
			slices.Repeat([]float64{9.5, 8.8}, 100)...),
	} {
		if got := highs(losses); len(got) > 0 {
			t.Errorf("%s: %v are high", name, got)
		}
	}
}

// A run that continues knows the noise, too: it has no spikes that it would not have had without the stop.
func TestUsualLossesAreNotHighAfterResume(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	losses := falling(2000, func() float64 { return 0.3 * random.NormFloat64() })
	for stop := 100; stop < len(losses); stop += 100 {
		var before, after lossWatch
		for _, x := range losses[:stop] {
			before.add(x)
		}
		extra := map[string]string{}
		before.save(extra)
		after.resume(extra)
		for i, x := range losses[stop:] {
			if after.add(x) {
				t.Fatalf("stopped after step %d: loss %g of step %d is high", stop, x, stop+i+1)
			}
		}
	}
}

func TestHighLosses(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	usual := falling(300, func() float64 { return 0.02 * random.NormFloat64() })
	from := func(first, last, steps int) (out []int) {
		for i := first; i <= last; i += steps {
			out = append(out, i)
		}
		return out
	}
	growing := func(losses []float64, to float64, steps int) []float64 { // in even steps
		out, last := slices.Clone(losses), losses[len(losses)-1]
		for i := range steps {
			out = append(out, last+(to-last)*float64(i+1)/float64(steps))
		}
		return out
	}
	for _, test := range []struct {
		name   string
		losses []float64
		want   func(got []int) bool
	}{
		{"a spike", append(slices.Clone(usual), 6, 3.5, 3.5), func(got []int) bool {
			return slices.Equal(got, []int{301})
		}},
		{"from the first steps on", []float64{5.5, 6.1, 9, 20, 40, 62, 62, 61}, func(got []int) bool {
			return slices.Equal(got, from(3, 8, 1))
		}},
		{"within 50 steps", growing(usual, 62, 50), func(got []int) bool {
			return got[0] < 310 && got[len(got)-1] == 350 && len(got) > 40
		}},
		{"within 2000 steps", growing(usual, 62, 2000), func(got []int) bool {
			return got[0] < 900 && got[len(got)-1] == 2300 && len(got) > 1400
		}},
		{"to a level where it stays", append(slices.Clone(usual), slices.Repeat([]float64{8}, 500)...),
			func(got []int) bool {
				return slices.Equal(got, from(301, 800, 1))
			}},
	} {
		if got := highs(test.losses); !test.want(got) {
			t.Errorf("%s: %d are high, from %v on", test.name, len(got), got[:min(1, len(got))])
		}
	}
}
