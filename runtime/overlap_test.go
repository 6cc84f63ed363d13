package runtime

import (
	"bytes"
	"errors"
	"math"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// withThreads is the weights that a program ends with on so many threads a rank, whether it ran through or was stopped
// and continued.
func withThreads(t *testing.T, n int, p *rank.Program, opts ...Option) []byte {
	t.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(n * p.MeshSize()))
	dir := t.TempDir()
	got, err := train(t, p, dir, opts...)
	if errors.Is(err, driver.ErrStop) || err != nil && len(opts) > 0 {
		got, err = train(t, p, dir, opts[:len(opts)-1]...) // the last one stopped it
	}
	must(t, err)
	return weights(t, got.Checkpoint)
}

// stopAt stops a run after a step.
func stopAt(step int) Option {
	return OnStep(func(s report.Step) error {
		if s.Step == step {
			return driver.ErrStop
		}
		return nil
	})
}

// skipping is a program whose third step is not finite.
func skipping() *rank.Program {
	p := bigram[float32](1, -1)
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		if r.StepID == 3 {
			r.LossSum = math.NaN()
		}
		forward(r, b)
	}
	return p
}

// A run whose updates overlap the next forward pass ends with the bits of one whose updates are done before it,
// also where it was stopped and continued.
func TestOverlapIsTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		p   func() *rank.Program
		set []Option
	}{
		"1 rank":  {p: func() *rank.Program { return bigram[float32](1, -1) }},
		"float64": {p: func() *rank.Program { return bigram[float64](1, -1) }},
		"2 ranks": {p: func() *rank.Program { return bigram[float32](2, -1) }},
		"sharded": {p: func() *rank.Program { return bigram[float32](2, 1) }},
		"skipped": {p: skipping},
		"looked at": {func() *rank.Program {
			return bigram[float32](1, -1)
		}, []Option{Set("train.eval.every", 1), Set("train.checkpoint.every", 2)}},
		"scaled": {func() *rank.Program {
			return bigram[float32](1, -1)
		}, []Option{Set("train.precision.loss_scale", 1024)}},
	} {
		want := withThreads(t, 1, c.p(), c.set...)
		if !bytes.Equal(withThreads(t, 3, c.p(), c.set...), want) {
			t.Errorf("%s: other bits", name)
		}
		if !bytes.Equal(withThreads(t, 3, c.p(), append(c.set, stopAt(5))...), want) {
			t.Errorf("%s: other bits where the run was stopped", name)
		}
	}
}

// An update that panics in any thread ends the run with its message.
func TestOverlappingUpdateThatPanics(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	p := bigram[float32](1, -1)
	back := p.Segments[0].Backward
	p.Segments[0].Backward = func(r *rank.Rank, b *rank.Block) {
		if r.StepID == 2 { // no update is running here
			r.Stage.Buckets[0].State = 1 << 40
		}
		back(r, b)
	}
	_, err := train(t, p, t.TempDir())
	if err == nil || !strings.HasPrefix(err.Error(), "rank 0: runtime error: index out of range") {
		t.Errorf("the run ended with %v", err)
	}
}

// A step leaves its update to the next one, which finishes it before it reads the parameters.
func TestUpdatesArePostponed(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	var trained *rank.Rank
	postponed := 0
	p := bigram[float32](1, -1)
	inner := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		trained = r
		if r.HasUpdates() {
			t.Error("a layer reads parameters that are not updated")
		}
		inner(r, b)
	}
	_, err := train(t, p, t.TempDir(), OnStep(func(Step) error {
		if trained.HasUpdates() {
			postponed++
		}
		return nil
	}))
	must(t, err)
	if postponed == 0 {
		t.Error("no update was postponed")
	}
}
