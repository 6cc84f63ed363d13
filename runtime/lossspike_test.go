package runtime

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/rank"
)

// Data of two kinds can have spikes without end: a line reports the first, the second, the fourth and so on.
func TestManySpikesAreFewWarnings(t *testing.T) {
	p := bigram[float64](2, 1)
	step := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		step(r, b)
		if r.ID == 0 && b.Micro == 0 && r.StepID > 20 && r.StepID%4 == 0 {
			r.LossSum += 1000
		}
	}
	var output bytes.Buffer
	dir := t.TempDir()
	_, err := train(t, p, dir, text(&output, false), Set("train.steps", 60))
	must(t, err)
	var steps []string
	for line := range strings.Lines(output.String()) {
		if rest, ok := strings.CutPrefix(line, "warning: step "); ok {
			_, count, _ := strings.Cut(rest, ")")
			steps = append(steps, rest[:strings.Index(rest, " (")]+strings.TrimSpace(count))
		}
	}
	want := []string{"24: the loss spikes", "28: the loss spikes; spikes of this run so far: 2",
		"36: the loss spikes; spikes of this run so far: 4", "52: the loss spikes; spikes of this run so far: 8"}
	if !slices.Equal(steps, want) {
		t.Errorf("warnings\n%s", output.String())
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
	eventsOf := func(dir string) (events []string) {
		_, others := lines(t, dir)
		for _, l := range others {
			if l.Event == "spike" || l.Event == "divergence" {
				events = append(events, fmt.Sprintf("%s %d", l.Event, l.Step))
			}
		}
		return events
	}
	usual, dir := t.TempDir(), t.TempDir()
	var quiet, output bytes.Buffer
	whole, err := train(t, raised(0, -1), usual, opts(&quiet)...)
	must(t, err)
	if events := eventsOf(usual); len(events) > 0 || strings.Contains(quiet.String(), "warning") {
		t.Errorf("a usual run: %v\n%s", events, quiet.String())
	}
	res, err := train(t, raised(30, 48), dir, opts(&output)...)
	must(t, err)
	if events := eventsOf(dir); !slices.Equal(events, []string{"spike 30", "divergence 45"}) {
		t.Errorf("events %v", events)
	}
	if string(weights(t, res.Checkpoint)) != string(weights(t, whole.Checkpoint)) {
		t.Error("a warning changed the training")
	}
	var warnings []string
	for line := range strings.Lines(output.String()) {
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
	if events := eventsOf(dir); events[len(events)-1] != "spike 51" {
		t.Errorf("after a resume: events %v\n%s", events, later.String())
	}
}
