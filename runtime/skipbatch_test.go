package runtime

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/report"
)

// spoiled is drawn with some global batches of badToken only. With isWithout, it does not have these batches.
type spoiled struct {
	drawn
	bad       []int64 // numbers of the batches, in ascending order
	isWithout bool
}

func (s spoiled) Train(g int64, tokens, labels []int32) (int, error) {
	if s.isWithout {
		for _, b := range s.bad {
			if g >= 8*b {
				g += 8
			}
		}
		return s.drawn.Train(g, tokens, labels)
	}
	n, err := s.drawn.Train(g, tokens, labels)
	if slices.Contains(s.bad, g/8) {
		for i := range tokens {
			tokens[i], labels[i] = badToken, badToken
		}
	}
	return n, err
}

func (s spoiled) TrainSamples() int64 {
	if s.isWithout {
		return s.drawn.TrainSamples() - 8*int64(len(s.bad))
	}
	return s.drawn.TrainSamples()
}

// With train.on_spike skip, a run has the losses and parameters of one whose data does not have the batches of the
// spikes: on any plan, wherever it is interrupted, and if it trains for an epoch. Batches 26, 27 and 31 follow the same
// checkpoint, and the last batch of the data is bad too.
func TestSkipBatch(t *testing.T) {
	data := spoiled{drawn{8 * 44, 10}, []int64{26, 27, 31, 43}, false}
	for _, length := range []Option{Set("train.steps", 38), Set("train.epochs", 1)} {
		job := func(w *bytes.Buffer, more ...Option) []Option {
			return append([]Option{text(w, false), length, Set("train.checkpoint.every", 10),
				Set("train.eval.every", 4), Set("train.on_spike", "skip"), Set("train.checkpoint.keep_last", 1),
				Set("train.schedule.kind", "constant"), Data(data)}, more...)
		}
		clean := data
		clean.isWithout = true
		var quiet bytes.Buffer
		want := map[int]string{}
		for _, dp := range []int{1, 2} {
			res, err := train(t, spiky(dp, 1000), t.TempDir(), job(&quiet, Data(clean))...)
			must(t, err)
			want[dp] = string(weights(t, res.Checkpoint))
		}
		if strings.Contains(quiet.String(), "left out") {
			t.Fatal(quiet.String())
		}
		var output bytes.Buffer
		dir := t.TempDir()
		res, err := train(t, spiky(2, 1000), dir, job(&output)...)
		must(t, err)
		if string(weights(t, res.Checkpoint)) != want[2] {
			t.Errorf("the parameters are not those of a run without the batches:\n%s", output.String())
		}
		const line = "warning: step 27: samples 208 to 215 are left out because of the spike; training goes back to " +
			"the checkpoint of step 20 and repeats the steps from there\n"
		if !strings.Contains(output.String(), line) {
			t.Error(output.String())
		}
		for _, after := range []int{3, 24, 27, 40, 47} { // steps until the interruption
			dir, n := t.TempDir(), 0
			var w bytes.Buffer
			_, err := train(t, spiky(1, 1000), dir, job(&w, OnStep(func(report.Step) error {
				n++
				if n == after {
					return driver.ErrStop
				}
				return nil
			}))...)
			if n == after {
				wantExit(t, err, exit.OnRequest)
			}
			rest, err := train(t, spiky(1, 1000), dir, job(&w)...)
			must(t, err)
			if string(weights(t, rest.Checkpoint)) != want[1] {
				t.Errorf("interrupted after %d steps, the run has other parameters:\n%s", after, w.String())
			}
		}
	}
}

// A step that spikes on every batch ends the run.
func TestSkippedBatchesEnd(t *testing.T) {
	var w bytes.Buffer
	dir := t.TempDir()
	_, err := train(t, spiky(2, 24), dir, text(&w, false), Set("train.steps", 60), Set("train.on_spike", "skip"),
		Set("train.checkpoint.every", 20))
	wantExit(t, err, exit.Nonfinite, "step 24: the loss spikes on 4 batches in a row, so the data is not the cause. "+
		"Lower train.optimizer.lr (0.05)", "train.on_spike=warn")
	_, others := lines(t, dir)
	var events []string
	for _, l := range others {
		events = append(events, fmt.Sprint(l.Event, l.Step))
	}
	if n := len(events); !slices.Equal(events[n-3:], []string{"skip_batch20", "spike24", "stop24"}) {
		t.Errorf("events %v", events)
	}
	_, err = train(t, spiky(2, 24), t.TempDir(), text(&w, false), Set("train.on_spike", "skip"))
	wantExit(t, err, exit.Input, "train.on_spike is skip, but train.checkpoint.every is 0")
}
