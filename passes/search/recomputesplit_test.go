package search

import (
	"errors"
	"strings"
	"testing"

	"github.com/planc-dev/planc/passes"
)

// Inputs of blocks are split over tp only if tp divides the positions of a rank. A job that requests it gets such a
// tp, or a message why there is none.
func TestRecomputeSplitDividesPositions(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 6), gpt2Config(12, 768, 12, 50257, 1024), 1024, 12, mixed)
	p.Pins = Pins{"recompute_split": {"true"}}
	r, err := Search(p)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Best.Plan.RecomputeSplit || 1024%r.Best.Plan.TP != 0 {
		t.Errorf("%v", r.Best.Plan)
	}
	if _, err := passes.Compile(p.Model, r.Best.Plan, p.Recipe, passes.Options{}); err != nil {
		t.Error(err)
	}
	p.Pins = Pins{"recompute_split": {"true"}, "tp": {"3"}, "recompute": {"full"}, "sp": {"false"}}
	_, err = Search(p)
	var illegal *IllegalError
	want := "recompute_split: tp 3 must divide 1024 positions: use tp 2, or recompute_split false"
	if !errors.As(err, &illegal) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
