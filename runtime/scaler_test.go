package runtime

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// torch is PyTorch's GradScaler as settings; its test has growth after 2 steps.
func torch(init float64, window int) LossScaleSettings {
	return LossScaleSettings{Kind: "dynamic", Init: init, Window: window, Hysteresis: 1,
		Min: math.SmallestNonzeroFloat64}
}

// deepSpeed is DeepSpeed's DynamicLossScaler as settings.
func deepSpeed(init float64, window, hysteresis int, min float64, consecutive bool) LossScaleSettings {
	return LossScaleSettings{Kind: "dynamic", Init: init, Window: window, Hysteresis: hysteresis, Min: min,
		Consecutive: consecutive}
}

// Sequences of good (.) and bad (x) steps with the scale after each, as a power of two, by published rules:
// test_dynamic_loss_scale.py of DeepSpeed (its scale after the steps that the test names) and the rules of its
// loss_scaler.py; PyTorch's documentation of GradScaler.
func TestScalerRules(t *testing.T) {
	for name, c := range map[string]struct {
		rule  LossScaleSettings
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
		"static": {LossScaleSettings{Kind: "static", Init: 8}, ".x.x",
			[]int{3, 3, 3, 3}},
		"none": {LossScaleSettings{}, ".x", []int{0, 0}},
	} {
		s := newScaler(c.rule)
		for i, step := range c.steps {
			s.update(step == 'x')
			if want := math.Exp2(float64(c.want[i])); s.scale != want {
				t.Errorf("%s: after %s the scale is %g, want %g", name, c.steps[:i+1], s.scale, want)
			}
			again := newScaler(c.rule) // as after a resume
			if err := again.restore(s.text()); err != nil || again != s {
				t.Errorf("%s: after %s the state %+v comes back as %+v: %v", name, c.steps[:i+1], s, again, err)
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

// The scale moves with the steps, is in the metrics, and a run that is stopped and continued has the scales, and the
// weights, of one that is not. A bad step is skipped, and does not stop a run whose scale still has room.
func TestScalerResumes(t *testing.T) {
	program := func() *rank.Program {
		p := bigram[float32](2, 1)
		step := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
			if r.ID == 1 && (r.StepID == 4 || r.StepID == 5) {
				r.LossSum = math.Inf(1)
			}
			step(r, b)
		}
		return p
	}
	var scales []float64
	options := func(more ...Option) []Option {
		return append(more, Set("train.precision.loss_scale", "dynamic"), Set("train.precision.loss_scale.init", 8),
			Set("train.precision.loss_scale.window", 2), Set("train.steps", 9), Set("train.on_nonfinite", "stop"))
	}
	note := func(s report.Step) error { scales = append(scales, s.LossScale); return nil }
	whole, err := train(t, program(), t.TempDir(), options(OnStep(note))...)
	must(t, err)
	want := []float64{8, 8, 16, 16, 16, 8, 8, 16, 16} // the first bad step is free, the second is not
	if !slices.Equal(scales, want) || whole.Skipped != 2 {
		t.Errorf("scales %v, want %v; %d skipped", scales, want, whole.Skipped)
	}
	dir := t.TempDir()
	scales = nil
	for range 3 { // stop after every second or third step
		last, err := train(t, program(), dir, options(OnStep(func(s report.Step) error {
			scales = append(scales, s.LossScale)
			if s.Step == 4 || s.Step == 6 {
				return ErrStop
			}
			return nil
		}))...)
		if last.Steps == 9 {
			must(t, err)
			if !bytes.Equal(weights(t, last.Checkpoint), weights(t, whole.Checkpoint)) {
				t.Error("a run that was stopped ends with other weights")
			}
			break
		}
		wantExit(t, err, exit.OnRequest)
	}
	if !slices.Equal(scales, want) {
		t.Errorf("resumed, the scales are %v, want %v", scales, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, report.MetricsFile)); err != nil ||
		!bytes.Contains(text, []byte(`"loss_scale":16`)) {
		t.Errorf("metrics: %v\n%s", err, text)
	}
}

// A loss scale that is a power of two changes no bit where nothing overflows or vanishes: it is divided out before the
// norm is reported, before clipping, which is active here, and before the update. Parallel plans cannot show that,
// since all scale.
func TestScaleIsDividedOut(t *testing.T) {
	const clip = 0.1
	plain, err := train(t, bigram[float64](2, 1), t.TempDir(), Set("train.optimizer.clip_norm", clip))
	must(t, err)
	for _, scale := range []any{1024.0, 0.125} {
		res, err := train(t, bigram[float64](2, 1), t.TempDir(), Set("train.optimizer.clip_norm", clip),
			Set("train.precision.loss_scale", scale))
		must(t, err)
		if !bytes.Equal(weights(t, res.Checkpoint), weights(t, plain.Checkpoint)) || res.GradNorm != plain.GradNorm {
			t.Errorf("scale %v: other parameters; gradient norm %g, without %g", scale, res.GradNorm, plain.GradNorm)
		}
	}
	if plain.GradNorm <= clip {
		t.Errorf("the norm %g is not clipped", plain.GradNorm)
	}
}
