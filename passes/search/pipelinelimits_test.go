package search

import (
	"errors"
	"slices"
	"testing"

	"github.com/planc-dev/planc/passes/search/space"
)

// Numbers far beyond what can be legal are answered immediately, whichever key they are for.
func TestFarBeyondLegal(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 8), gpt2Config(12, 768, 12, 50257, 1024), 1024, 64, mixed)
	best, err := Search(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pins Pins
		want string
	}{
		{Pins{"tp": {"1000000000000"}},
			"tp 1000000000000 leaves a rank without a row of the vocabulary of 50257: use tp 4"},
		{Pins{"pp": {"1000000000"}}, "pp 1000000000 · vpp 1 is 1000000000 chunks, but 12 blocks with embedding " +
			"and head " +
			"fill at most 14"},
		{Pins{"pp": {"1000000000000000000"}}, "pp 1000000000000000000 must divide 8 devices: use pp 8"},
		{Pins{"pp": {"2"}, "vpp": {"1000000000"}},
			"pp 2 · vpp 1000000000 exceeds the limits: up to 128 stages of up to 64 chunks, and up to 128 " +
				"chunks in total"},
		{Pins{"cp": {"1000000000000"}}, "cp 1000000000000 must divide 8 devices: use cp 8"},
		{Pins{"micro_batch": {"1000000000000000000"}},
			"micro_batch 1000000000000000000 × dp 8 must divide the global batch of 64: use micro_batch 8"},
	} {
		_, err := best.WhyNot(c.pins)
		var illegal *IllegalError
		if !errors.As(err, &illegal) || !slices.ContainsFunc(illegal.Reasons, func(r Reason) bool {
			return r.Message == c.want
		}) {
			t.Errorf("%s: %v, want %s", c.pins, err, c.want)
		}
	}
}

// A deep model on many devices has a space of limited pipelines.
func TestDeepModel(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 16, 8), gpt2Config(1024, 768, 12, 50257, 1024), 1024, 512, mixed)
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := s.space(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sp.families {
		if f.Plan.PP > space.MaxStages || f.Plan.VPP > space.MaxVPP || len(f.Counts) > space.MaxChunks {
			t.Fatalf("%v has %d chunks", f.Plan, len(f.Counts))
		}
	}
	if n := len(sp.families); n > 50_000 {
		t.Errorf("%d families", n)
	}
}

// A space with more families than the limit is refused. A question about a plan with pins removes a pin only if the
// space stays below the limit.
func TestTooManyFamilies(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 4, 0), llamaConfig(32, 4096, 32, 8, 14336, 128256, 8192), 8192, 256, mixed)
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := s.space(p)
	if err != nil {
		t.Fatal(err)
	}
	s.maxFamilies = len(sp.families)
	if _, err := s.space(p); err != nil {
		t.Errorf("%d families with a bound of as many: %v", len(sp.families), err)
	}
	s.maxFamilies--
	var many *TooManyPlans
	if _, err := s.space(p); !errors.As(err, &many) || many.Max != s.maxFamilies {
		t.Errorf("%d families with a bound of one less: %v", len(sp.families), err)
	}
	p.Pins = Pins{"tp": {"2"}}
	pinned, err := s.space(p)
	if err != nil {
		t.Fatal(err)
	}
	if s.freedSpace(pinned, "tp") != pinned {
		t.Error("the space without the pin has more families than the bound, and is used")
	}
}
