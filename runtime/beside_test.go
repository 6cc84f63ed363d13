package runtime

import (
	"bytes"
	"errors"
	goruntime "runtime"
	"testing"
)

// withThreads is the weights that a program ends with on so many threads a rank, whether it ran through or was stopped and continued.
func withThreads(t *testing.T, n int, p *Program, opts ...Option) []byte {
	t.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(n * p.mesh().Size()))
	dir := t.TempDir()
	got, err := train(t, p, dir, opts...)
	if errors.Is(err, ErrStop) || err != nil && len(opts) > 0 {
		got, err = train(t, p, dir)
	}
	must(t, err)
	return weights(t, got.Checkpoint)
}

// A run whose updates are done beside the next forward pass ends with the bits of one in which they are done before it, also where it was
// stopped and continued.
func TestBesideIsTheSame(t *testing.T) {
	stop := OnStep(func(s Step) error {
		if s.Step == 5 {
			return ErrStop
		}
		return nil
	})
	for name, p := range map[string]func() *Program{
		"1 rank":  func() *Program { return bigram[float32](1, -1) },
		"float64": func() *Program { return bigram[float64](1, -1) },
		"2 ranks": func() *Program { return bigram[float32](2, -1) },
		"sharded": func() *Program { return bigram[float32](2, 0) },
	} {
		want := withThreads(t, 1, p())
		if !bytes.Equal(withThreads(t, 3, p()), want) {
			t.Errorf("%s: other bits", name)
		}
		if !bytes.Equal(withThreads(t, 3, p(), stop), want) {
			t.Errorf("%s: other bits where the run was stopped", name)
		}
	}
}

// A step leaves its update to the next one, which does it before it reads the parameters; reading them in between settles it.
func TestBesideIsPostponed(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	left := 0
	p := bigram[float32](1, -1)
	inner := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *Rank, b *Block) {
		if r.late == nil || r.late.open != 0 {
			t.Error("a layer reads parameters that are not updated")
		}
		inner(r, b)
	}
	p.Segments[0].Backward = func(back func(*Rank, *Block)) func(*Rank, *Block) {
		return func(r *Rank, b *Block) {
			if u := r.late.buckets[0]; u != nil && u.done.Load() == int64(len(u.pieces)) && r.StepID > 1 {
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
