package runtime

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// The scale moves with the steps, is in the metrics, and a run that is stopped and continued has the scales, and the
// weights, of one that is not. A bad step is skipped, and does not stop a run whose scale can still fall.
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
				return driver.ErrStop
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
