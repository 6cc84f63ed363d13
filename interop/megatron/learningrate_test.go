package megatron

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// All options of the learning rate are in the job, or have a note that says why they are not.
func TestLearningRate(t *testing.T) {
	for _, c := range []struct{ options, schedule, notes string }{
		{"--train-iters 1000 --lr-warmup-fraction 0.01", "kind linear, warmup 10", ""},
		{"--train-iters 1000 --lr-warmup-fraction 0.01 --lr-decay-iters 900", "kind linear, warmup 9",
			"--lr-decay-iters: planc's decay ends at the last step 1000, and this one at step 900"},
		{"--lr-warmup-fraction 0.01", "kind linear",
			"--lr-warmup-fraction: planc needs the number of steps to read it: add --train-iters"},
		{"--train-samples 64000 --lr-decay-samples 64000 --lr-warmup-samples 6400 --lr-decay-style cosine",
			"warmup 100, kind cosine", ""},
		{"--train-iters 1000 --lr-decay-iters 1000 --lr-warmup-iters 7 --min-lr 1e-5",
			"kind linear, warmup 7, min_lr 1e-5", ""},
		{"--train-iters 1000 --lr-decay-iters 900 --lr-decay-style constant", "kind constant",
			"--lr-decay-iters: has no effect with the other options"},
		{"--train-iters 1000 --lr-decay-style WSD --lr-wsd-decay-iters 100 --lr-wsd-decay-style linear",
			"kind wsd, decay 100", ""},
		{"--train-iters 1000 --lr-decay-style WSD --lr-wsd-decay-iters 100 --lr-wsd-decay-style cosine",
			"kind wsd, decay 100", "--lr-wsd-decay-style: planc's decay is linear"},
		{"--train-iters 1000 --lr-decay-style WSD --lr-wsd-decay-samples 6400", "kind wsd, decay 100",
			"--lr-decay-style: planc's decay is linear, and this one is exponential"},
		{"--lr-decay-style WSD", "", "--lr-decay-style: WSD needs --lr-wsd-decay-iters"},
		{"--lr-warmup-init 1e-6", "kind linear", "--lr-warmup-init: planc's learning rate rises from 0"},
		{"--lr-decay-iters 900", "kind linear", "--lr-decay-iters: planc's decay ends at the last step"},
		{"--train-iters 10 --weight-decay-incr-style linear", "kind linear", "--weight-decay-incr-style: changes " +
			"weight decay during training; planc keeps --weight-decay"},
		{"--train-iters 1000 --lr-decay-iters $ITERS", "kind linear",
			"--lr-decay-iters: $ITERS has no value here: type --define ITERS=VALUE"},
	} {
		im := importText(t, small+"--lr 1e-3 "+c.options, interop.Options{})
		var schedule, notes []string
		for _, f := range im.Fields {
			if name, ok := strings.CutPrefix(f.Path, "train.schedule."); ok {
				schedule = append(schedule, name+" "+f.Value)
			}
		}
		for _, k := range im.Keys {
			if k.Note != "" && strings.Contains(c.options, k.Name) {
				notes = append(notes, k.Name+": "+k.Note)
			}
		}
		if diff := cmp.Diff([]string{c.schedule, c.notes}, []string{strings.Join(schedule, ", "),
			strings.Join(notes, ", ")}); diff != "" {
			t.Errorf("%s: %s", c.options, diff)
		}
	}
}

// SGD keeps its momentum, weight decay and clipping.
func TestSGD(t *testing.T) {
	const options = "--lr 1e-3 --optimizer sgd --clip-grad 2 --weight-decay 0.2"
	fields := values(importText(t, small+options, interop.Options{}))
	for path, want := range map[string]string{"kind": "sgd", "momentum": "0.9", "clip_norm": "2",
		"weight_decay": "0.2"} {
		if got := fields["train.optimizer."+path]; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
