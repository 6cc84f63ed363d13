package runtime

import (
	"bytes"
	"errors"
	"math"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/tensors"
)

// withThreads is the weights that a program ends with on so many threads a rank, whether it ran through or was stopped
// and continued.
func withThreads(t *testing.T, n int, p *Program, opts ...Option) []byte {
	t.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(n * p.MeshSize()))
	dir := t.TempDir()
	got, err := train(t, p, dir, opts...)
	if errors.Is(err, ErrStop) || err != nil && len(opts) > 0 {
		got, err = train(t, p, dir, opts[:len(opts)-1]...) // the last one stopped it
	}
	must(t, err)
	return weights(t, got.Checkpoint)
}

// stopAt stops a run after a step.
func stopAt(step int) Option {
	return OnStep(func(s report.Step) error {
		if s.Step == step {
			return ErrStop
		}
		return nil
	})
}

// skipping is a program whose third step is not finite.
func skipping() *Program {
	p := bigram[float32](1, -1)
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *Rank, b *Block) {
		if r.StepID == 3 {
			r.LossSum = math.NaN()
		}
		forward(r, b)
	}
	return p
}

// A run whose updates are done beside the next forward pass ends with the bits of one in which they are done before it,
// also where it was stopped and continued.
func TestBesideIsTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		p   func() *Program
		set []Option
	}{
		"1 rank":  {p: func() *Program { return bigram[float32](1, -1) }},
		"float64": {p: func() *Program { return bigram[float64](1, -1) }},
		"2 ranks": {p: func() *Program { return bigram[float32](2, -1) }},
		"sharded": {p: func() *Program { return bigram[float32](2, 1) }},
		"skipped": {p: skipping},
		"looked at": {func() *Program {
			return bigram[float32](1, -1)
		}, []Option{Set("train.eval.every", 1), Set("train.checkpoint.every", 2)}},
		"scaled": {func() *Program {
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

// A piece that panics ends the run with what it said, whichever thread did it.
func TestBesideThatPanics(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	p := bigram[float32](1, -1)
	back := p.Segments[0].Backward
	p.Segments[0].Backward = func(r *Rank, b *Block) {
		if r.StepID == 2 { // no update is under way here
			r.updates.piece = func(int, tensors.Span) { panic("a piece of an update") }
		}
		back(r, b)
	}
	_, err := train(t, p, t.TempDir())
	if err == nil || !strings.HasPrefix(err.Error(), "rank 0: a piece of an update\n") {
		t.Errorf("the run ended with %v", err)
	}
}

// A step leaves its update to the next one, which does it before it reads the parameters; reading them in between
// settles it.
func TestBesideIsPostponed(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	left := 0
	p := bigram[float32](1, -1)
	inner := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *Rank, b *Block) {
		if r.updates == nil || r.updates.open != 0 {
			t.Error("a layer reads parameters that are not updated")
		}
		inner(r, b)
	}
	p.Segments[0].Backward = func(back func(*Rank, *Block)) func(*Rank, *Block) {
		return func(r *Rank, b *Block) {
			if u := r.updates.buckets[0]; u != nil && u.done.Load() == int64(len(u.pieces)) && r.StepID > 1 {
				left++
			}
			back(r, b)
		}
	}(p.Segments[0].Backward)
	_, err := train(t, p, t.TempDir())
	must(t, err)
	if left == 0 {
		t.Error("no update was postponed")
	}
}
