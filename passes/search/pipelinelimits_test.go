package search

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
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
			"tp 1000000000000 leaves a rank without a row of the vocabulary of 50257: use tp 50257 or less"},
		{Pins{"pp": {"1000000000"}}, "pp 1000000000 · vpp 1 is 1000000000 chunks, but 12 blocks with embedding and head " +
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

// The largest degree that leaves no rank without a row equals the result of trying all degrees.
func TestWidestVocab(t *testing.T) {
	for vocab := 1; vocab < 90; vocab++ {
		d := Dims{Vocab: vocab}
		for tp := 1; tp < 120; tp++ {
			want := tp
			for !d.rowsForAll(want) {
				want--
			}
			if got := d.widestVocab(tp); got != want {
				t.Fatalf("vocabulary %d, tp %d: %d, want %d", vocab, tp, got, want)
			}
		}
	}
}

// The limits of a pipeline exclude no plan of a model of 126 blocks, and limit those of a deeper one.
func TestPipelineBounds(t *testing.T) {
	for _, c := range []struct{ layers, pp, want int }{
		{126, 2, 64}, {126, 64, 2}, {126, 4, 32}, {1024, 2, 64}, {1024, 16, 8}, {1024, 1, 1}, {12, 8, 2},
	} {
		d := Dims{Layers: c.layers, Embed: true, Head: true}
		if got := d.maxVPPTried(c.pp); got != c.want {
			t.Errorf("%d layers, pp %d: up to %d chunks a stage, want %d", c.layers, c.pp, got, c.want)
		}
	}
	set := &ruleContext{Dims: Dims{Layers: 1024, Embed: true, Head: true}, devices: 256, batch: 1024, nodes: 32,
		rules: stageRules}
	plan := ir.Plan{DP: 1, TP: 1, PP: 256, VPP: 1, CP: 1, EP: 1, ETP: 1, MicroBatch: 1, MicroBatches: 1024,
		Schedule: "1f1b", CPKind: "none"}
	var messages []string
	for _, r := range legal(&plan, set) {
		messages = append(messages, r.Message)
	}
	if want := "pp 256 · vpp 1 exceeds the limits"; !strings.Contains(strings.Join(messages, "\n"), want) {
		t.Errorf("%q, want %s", messages, want)
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
		if !shallow(&f.plan, nil) || len(f.counts) > maxChunks {
			t.Fatalf("%v has %d chunks", f.plan, len(f.counts))
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
