package runtime

import (
	"bytes"
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/rank"
)

// Poison changes nothing of a program that reads only what is there: facts.md 4.3 #3, a forward pass that reads
// parameters before they are gathered.
func TestPoisonChangesNothing(t *testing.T) {
	clean, err := train(t, bigram[float32](2, 1), t.TempDir())
	must(t, err)
	poisoned, err := train(t, bigram[float32](2, 1), t.TempDir(), Poison())
	must(t, err)
	if !bytes.Equal(weights(t, clean.Checkpoint), weights(t, poisoned.Checkpoint)) {
		t.Error("other parameters")
	}
}

// A program that reads what has fallen free trains to NaN, or would, did the guard not stop it.
func TestPoisonShowsStaleReads(t *testing.T) {
	p := bigram[float64](2, 1)
	s := &p.Stages[0]
	s.Arena.Workspace = Region{Offset: s.Arena.Size, Size: 64}
	s.Arena.Size += 64
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		forward(r, b)
		r.LossSum += View[float64](r, b.Work, 1)[0]
	}
	res, err := train(t, p, t.TempDir(), Set("train.steps", 2))
	must(t, err)
	if math.IsNaN(res.FirstLoss) {
		t.Fatal("the workspace is NaN without poison")
	}
	res, err = train(t, p, t.TempDir(), Set("train.steps", 2), Poison())
	if err == nil && !math.IsNaN(res.FirstLoss) {
		t.Errorf("loss %v, %v", res.FirstLoss, err)
	}
}
