package runtime

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/rank"
)

// highs are the steps, from 1, whose losses are high.
func highs(losses []float64) (steps []int) {
	var w lossWatch
	for i, x := range losses {
		if w.add(x) {
			steps = append(steps, i+1)
		}
	}
	return steps
}

// falling is a usual training: a loss that falls from 5.5 to 3, with noise of a relative deviation.
func falling(steps int, noise func() float64) []float64 {
	out := make([]float64, steps)
	for i := range out {
		out[i] = (3 + 2.5*math.Exp(-float64(i)/200)) * (1 + noise())
	}
	return out
}

func TestUsualLossesAreNotHigh(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rare := map[string]int{"Gaussian": 0, "skewed": 2}
	for _, part := range []float64{0, 0.001, 0.01, 0.05} {
		for name, noise := range map[string]func() float64{
			"Gaussian": func() float64 { return part * random.NormFloat64() },
			"skewed":   func() float64 { return part * (random.ExpFloat64() - 1) },
		} {
			if got := highs(falling(20000, noise)); len(got) > rare[name] {
				t.Errorf("%s noise of %g: %v are high", name, part, got)
			}
		}
	}
	for name, losses := range map[string][]float64{
		"constant": slices.Repeat([]float64{5.5}, 200),
		"learned by heart": append(falling(300, func() float64 {
			return 0
		}), slices.Repeat([]float64{1e-4, 4e-3, 2e-4}, 100)...),
		"a first loss that is lucky":   append([]float64{2.2}, slices.Repeat([]float64{2.9, 2.4, 3.1}, 100)...),
		"a first loss of another kind": append([]float64{0.3}, slices.Repeat([]float64{1.5, 0.9, 1.7}, 100)...),
		"warm-up": append([]float64{10.9, 10.8, 9.8, 9.2, 10.4, 11.6, 10.1},
			slices.Repeat([]float64{9.5, 8.8}, 100)...),
	} {
		if got := highs(losses); len(got) > 0 {
			t.Errorf("%s: %v are high", name, got)
		}
	}
}

// A run that continues knows the noise, too: it has no spikes that it would not have had without the stop.
func TestUsualLossesAreNotHighAfterResume(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	losses := falling(2000, func() float64 { return 0.3 * random.NormFloat64() })
	for stop := 100; stop < len(losses); stop += 100 {
		var before, after lossWatch
		for _, x := range losses[:stop] {
			before.add(x)
		}
		extra := map[string]string{}
		before.save(extra)
		after.resume(extra)
		for i, x := range losses[stop:] {
			if after.add(x) {
				t.Fatalf("stopped after step %d: loss %g of step %d is high", stop, x, stop+i+1)
			}
		}
	}
}

// Data of two kinds can have spikes without end: people are told of the first, the second, the fourth and so on.
func TestManySpikesAreFewWarnings(t *testing.T) {
	p := bigram[float64](2, 1)
	step := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		step(r, b)
		if r.ID == 0 && b.Micro == 0 && r.StepID > 20 && r.StepID%4 == 0 {
			r.LossSum += 1000
		}
	}
	var said bytes.Buffer
	dir := t.TempDir()
	_, err := train(t, p, dir, text(&said, false), Set("train.steps", 60))
	must(t, err)
	var steps []string
	for line := range strings.Lines(said.String()) {
		if rest, ok := strings.CutPrefix(line, "warning: step "); ok {
			_, count, _ := strings.Cut(rest, ")")
			steps = append(steps, rest[:strings.Index(rest, " (")]+strings.TrimSpace(count))
		}
	}
	want := []string{"24: the loss spikes", "28: the loss spikes; spikes of this run so far: 2",
		"36: the loss spikes; spikes of this run so far: 4", "52: the loss spikes; spikes of this run so far: 8"}
	if !slices.Equal(steps, want) {
		t.Errorf("warnings\n%s", said.String())
	}
	_, others := lines(t, dir)
	n := 0
	for _, l := range others {
		if l.Event == "spike" {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d spikes in the metrics", n)
	}
}

func TestHighLosses(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	usual := falling(300, func() float64 { return 0.02 * random.NormFloat64() })
	from := func(first, last, steps int) (out []int) {
		for i := first; i <= last; i += steps {
			out = append(out, i)
		}
		return out
	}
	growing := func(losses []float64, to float64, steps int) []float64 { // in even steps
		out, last := slices.Clone(losses), losses[len(losses)-1]
		for i := range steps {
			out = append(out, last+(to-last)*float64(i+1)/float64(steps))
		}
		return out
	}
	for _, test := range []struct {
		name   string
		losses []float64
		want   func(got []int) bool
	}{
		{"a spike", append(slices.Clone(usual), 6, 3.5, 3.5), func(got []int) bool {
			return slices.Equal(got, []int{301})
		}},
		{"from the first steps on", []float64{5.5, 6.1, 9, 20, 40, 62, 62, 61}, func(got []int) bool {
			return slices.Equal(got, from(3, 8, 1))
		}},
		{"within 50 steps", growing(usual, 62, 50), func(got []int) bool {
			return got[0] < 310 && got[len(got)-1] == 350 && len(got) > 40
		}},
		{"within 2000 steps", growing(usual, 62, 2000), func(got []int) bool {
			return got[0] < 900 && got[len(got)-1] == 2300 && len(got) > 1400
		}},
		{"to a level where it stays", append(slices.Clone(usual), slices.Repeat([]float64{8}, 500)...),
			func(got []int) bool {
				return slices.Equal(got, from(301, 800, 1))
			}},
	} {
		if got := highs(test.losses); !test.want(got) {
			t.Errorf("%s: %d are high, from %v on", test.name, len(got), got[:min(1, len(got))])
		}
	}
}

// A run warns of a spike and of divergence once each, by a line in its metrics and one for people, and does nothing
// else.
func TestLossWarnings(t *testing.T) {
	raised := func(from, to int) *rank.Program {
		p := bigram[float64](2, 1)
		step := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
			step(r, b)
			if r.ID == 0 && b.Micro == 0 && from <= r.StepID && r.StepID <= to {
				r.LossSum += 1000
			}
		}
		return p
	}
	opts := func(w *bytes.Buffer, more ...Option) []Option {
		return append([]Option{text(w, false), Set("train.steps", 60), Set("train.checkpoint.every", 25)}, more...)
	}
	of := func(dir string) (events []string) {
		_, others := lines(t, dir)
		for _, l := range others {
			if l.Event == "spike" || l.Event == "divergence" {
				events = append(events, fmt.Sprintf("%s %d", l.Event, l.Step))
			}
		}
		return events
	}
	usual, dir := t.TempDir(), t.TempDir()
	var quiet, said bytes.Buffer
	whole, err := train(t, raised(0, -1), usual, opts(&quiet)...)
	must(t, err)
	if events := of(usual); len(events) > 0 || strings.Contains(quiet.String(), "warning") {
		t.Errorf("a usual run: %v\n%s", events, quiet.String())
	}
	res, err := train(t, raised(30, 48), dir, opts(&said)...)
	must(t, err)
	if events := of(dir); !slices.Equal(events, []string{"spike 30", "divergence 45"}) {
		t.Errorf("events %v", events)
	}
	if string(weights(t, res.Checkpoint)) != string(weights(t, whole.Checkpoint)) {
		t.Error("a warning changed the training")
	}
	var warnings []string
	for line := range strings.Lines(said.String()) {
		if strings.HasPrefix(line, "warning: ") {
			warnings = append(warnings, line)
		}
	}
	if len(warnings) != 2 || !strings.HasPrefix(warnings[0], "warning: step 30: the loss spikes (loss 2") ||
		!strings.HasSuffix(warnings[1],
			"). Lower train.optimizer.lr (0.05), or raise train.schedule.warmup (3); the last checkpoint from before "+
				"that is of step 25 (--resume 25)\n") {
		t.Errorf("warnings\n%s", strings.Join(warnings, ""))
	}

	// A run that continues knows what was reached before it.
	var later bytes.Buffer
	_, err = train(t, raised(51, 60), dir, opts(&later, Resume("50"))...)
	must(t, err)
	if events := of(dir); events[len(events)-1] != "spike 51" {
		t.Errorf("after a resume: events %v\n%s", events, later.String())
	}
}
