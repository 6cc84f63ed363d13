package driver

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/settings"
)

// torch is PyTorch's GradScaler as settings; its test has growth after 2 steps.
func torch(init float64, window int) program.LossScaleSettings {
	return program.LossScaleSettings{Kind: "dynamic", Init: init, Window: window, Hysteresis: 1,
		Min: math.SmallestNonzeroFloat64}
}

// deepSpeed is DeepSpeed's DynamicLossScaler as settings.
func deepSpeed(init float64, window, hysteresis int, min float64, consecutive bool) program.LossScaleSettings {
	return program.LossScaleSettings{Kind: "dynamic", Init: init, Window: window, Hysteresis: hysteresis, Min: min,
		Consecutive: consecutive}
}

// Sequences of good (.) and bad (x) steps with the scale after each, as a power of two, by published rules:
// test_dynamic_loss_scale.py of DeepSpeed (its scale after the steps that the test names) and the rules of its
// loss_scaler.py; PyTorch's documentation of GradScaler.
func TestScalerRules(t *testing.T) {
	for name, c := range map[string]struct {
		rule  program.LossScaleSettings
		steps string
		want  []int
	}{
		"deepspeed, all overflow": {deepSpeed(16, 2, 1, 1, false), "xxxxxxxx",
			[]int{3, 2, 1, 0, 0, 0, 0, 0}},
		"deepspeed, min 0.25": {deepSpeed(16, 2, 1, 0.25, false), "xxxxxxxx",
			[]int{3, 2, 1, 0, -1, -2, -2, -2}},
		"deepspeed, some overflow: two, window+1 good, one": {deepSpeed(256, 2, 1, 1, false), "xx...x",
			[]int{7, 6, 6, 7, 7, 6}},
		"deepspeed, no overflow": {deepSpeed(256, 2, 1, 1, false), "......",
			[]int{8, 9, 9, 10, 10, 11}},
		"deepspeed, the first of two is free": {deepSpeed(256, 4, 2, 1, false), "xxx", []int{8, 7, 6}},
		"deepspeed, free again only by growth": {deepSpeed(256, 3, 2, 1, false), "x.x...xx",
			[]int{8, 8, 7, 7, 7, 8, 8, 7}},
		"deepspeed, consecutive: free again by a good step": {deepSpeed(256, 9, 2, 1, true), "x.x.xx",
			[]int{8, 8, 8, 8, 8, 7}},
		"deepspeed, window from the last overflow": {deepSpeed(256, 3, 1, 1, false), "..x...",
			[]int{8, 8, 7, 7, 7, 8}},
		"torch, growth interval 2": {torch(4, 2), "..x", []int{2, 3, 2}},
		"torch, counter starts again after a skip": {torch(4, 3), "..x..x...", []int{2, 2, 1, 1, 1,
			0, 0, 0, 1}},
		"torch, no min": {torch(1, 3), "xxx", []int{-1, -2, -3}},
		"torch, never beyond float32": {torch(math.Exp2(126), 1), "....",
			[]int{127, 127, 127, 127}},
		"static": {program.LossScaleSettings{Kind: "static", Init: 8}, ".x.x",
			[]int{3, 3, 3, 3}},
		"none": {program.LossScaleSettings{}, ".x", []int{0, 0}},
	} {
		s := newScaler(c.rule)
		for i, step := range c.steps {
			s.update(step == 'x')
			if want := math.Exp2(float64(c.want[i])); s.scale != want {
				t.Errorf("%s: after %s the scale is %g, want %g", name, c.steps[:i+1], s.scale, want)
			}
			second := newScaler(c.rule) // as after a resume
			if err := second.restore(s.text()); err != nil || second != s {
				t.Errorf("%s: after %s the state %+v comes back as %+v: %v", name, c.steps[:i+1], s, second, err)
			}
		}
	}
}

// A checkpoint's scale is one that a run can have.
func TestLossScaleOfACheckpoint(t *testing.T) {
	for _, text := range []string{"NaN 0 0", "+Inf 0 0", "-1 0 0", "0 0 0", "1e39 0 0", "8 -1 0", "8 0 -1",
		"8 9223372036854775807 0", "8 0 9223372036854775807", "8"} {
		s := newScaler(settings.DynamicScale)
		if err := s.restore(text); err == nil {
			t.Errorf("%s: %+v", text, s)
		}
	}
	s := newScaler(settings.DynamicScale)
	want := `its loss scale "-1 0 0" is invalid: the scale must be above 0 and fit float32, and counts must be ` +
		`from 0 to ` +
		`9007199254740992`
	if err := s.restore("-1 0 0"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
