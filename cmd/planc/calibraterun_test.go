package main

import "testing"

// Steps of padded samples have fewer unmasked tokens than a batch, and count only where samples are padded.
func TestMeasuredStepsOfPaddedSamples(t *testing.T) {
	const metrics = `{"attempt":1,"step":1,"tokens":60,"step_s":9}
{"attempt":1,"step":2,"tokens":124,"step_s":1}
{"attempt":1,"step":3,"tokens":180,"step_s":2}
{"attempt":1,"step":4,"tokens":180,"step_s":3}
{"attempt":1,"step":5,"tokens":300,"step_s":4}
`
	for isPadded, want := range map[bool][2]int{false: {2, 2}, true: {2, 3}} {
		r := measureSteps([]byte(metrics), 64, isPadded)
		if got := [2]int{r.First, r.Last}; got != want || r.Steps != want[1]-1 {
			t.Errorf("padded %v: steps %v, %d of them; want %v", isPadded, got, r.Steps, want)
		}
	}
}
