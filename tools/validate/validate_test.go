package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/validate"
)

// The page, its plots and the error bars follow from the rows and the cost model.
func TestReportIsCurrent(t *testing.T) {
	rows, err := read("rows")
	if err != nil {
		t.Fatal(err)
	}
	files, err := reported(rows, filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s is out of date (%v); run go run ./validate in the folder tools", name, err)
		}
	}
}

// Rows that are held out are in no sample of the fit and in no error bar. Each other source is in the fit.
func TestHeldOutStaysOut(t *testing.T) {
	all, err := read("rows")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]bool{}
	for _, s := range samples(all) {
		if all.unseen(s.row) {
			t.Errorf("%s row %d is held out, but is in the fit", s.row.File, s.row.Number)
		}
		in[s.row.File] = true
	}
	for _, file := range []string{"megatron_lm.csv", "bigscience_bloom_a100.csv", "mosaicml_llm_foundry.csv",
		"vtrain_a100_single.csv", "amp_t4.csv", "nvidia_megatron_bridge.csv"} {
		if !in[file] {
			t.Errorf("no row of %s is in the fit", file)
		}
	}
}

// Each constant of the fit has the value in the code: a fit that begins at its prior ends near the committed value,
// unless constants were changed by hand.
func TestConstantsAreFitted(t *testing.T) {
	for _, p := range params() {
		if ratio := *p.at / p.prior; ratio < 0.4 || ratio > 2.5 {
			t.Errorf("%s is %g, its prior %g", p.name, *p.at, p.prior)
		}
	}
	if len(params()) > 30 {
		t.Errorf("%d constants are too many for %d engines", len(params()), len(engines.Engines)-1)
	}
}

// Pairs of plans within the planner's limit for indistinguishable plans are in the predicted order little more often
// than by luck, and less often than pairs with larger differences.
func TestPlansApart(t *testing.T) {
	rows, err := read("rows")
	if err != nil {
		t.Fatal(err)
	}
	s := studyOf(rows)
	part := func(over, most float64) float64 {
		pairs, right := validate.PairsApart(s.all(), over, most)
		if pairs < 300 {
			t.Errorf("%d pairs are more than %v apart and up to %v", pairs, over, most)
		}
		return float64(right) / float64(max(1, pairs))
	}
	within, beyond, far := part(0.005, search.Apart), part(search.Apart, 5*search.Apart), part(10*search.Apart, 1000)
	if within > 0.58 || beyond < within+0.08 || far < 0.95 {
		t.Errorf("in their order: %.3f within %v, %.3f up to five times that, %.3f beyond ten times", within,
			search.Apart, beyond, far)
	}
}
