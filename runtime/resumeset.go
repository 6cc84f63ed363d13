package runtime

import (
	"fmt"
	"strings"
)

// shaping are the settings that decide what a step does to the parameters, by their paths in the job file. A checkpoint has
// them, so that a run which continues it can say what is no longer as it was. A value of nil decides nothing.
var shaping = []struct {
	path  string
	value func(t *TrainSettings) any
}{
	{"train.optimizer.lr", func(t *TrainSettings) any { return t.Optimizer.LR }},
	{"train.optimizer.betas", func(t *TrainSettings) any { return t.Optimizer.Betas }},
	{"train.optimizer.eps", func(t *TrainSettings) any { return t.Optimizer.Eps }},
	{"train.optimizer.weight_decay", func(t *TrainSettings) any { return t.Optimizer.WeightDecay }},
	{"train.optimizer.momentum", func(t *TrainSettings) any { return t.Optimizer.Momentum }},
	{"train.optimizer.clip_norm", func(t *TrainSettings) any { return t.Optimizer.ClipNorm }},
	{"train.experts.bias_rate", func(t *TrainSettings) any { return t.Experts.BiasRate }},
	{"train.schedule.kind", func(t *TrainSettings) any { return t.Schedule.Kind }},
	{"train.schedule.warmup", func(t *TrainSettings) any { return t.Schedule.Warmup }},
	{"train.schedule.min_lr", func(t *TrainSettings) any { return t.Schedule.MinLR }},
	{"train.schedule.decay", func(t *TrainSettings) any { return t.Schedule.Decay }},
	{"train.steps", func(t *TrainSettings) any { return t.towards(t.Steps) }},
	{"train.epochs", func(t *TrainSettings) any { return t.towards(t.Epochs) }},
	{"train.tokens", func(t *TrainSettings) any { return t.towards(t.Tokens) }},
	{"train.on_nonfinite", func(t *TrainSettings) any { return t.OnNonfinite }},
}

// towards is a length of training where the learning rate falls towards its end, and nil where no step's rate depends on it.
func (t *TrainSettings) towards(length any) any {
	switch t.Schedule.Kind {
	case "linear", "cosine", "wsd":
		return length
	}
	return nil
}

// shaped adds them to what a checkpoint says beside its tensors.
func (s *Settings) shaped(extra map[string]string) {
	for _, x := range shaping {
		if v := x.value(&s.Train); v != nil {
			extra[x.path] = fmt.Sprint(v)
		}
	}
}

// changed says which of them a checkpoint has otherwise: "train.optimizer.lr was 0.1, is 0.2"; "" where none, or where it is of a
// program that did not write them.
func (s *Settings) changed(extra map[string]string) string {
	var out []string
	for _, x := range shaping {
		was, written := extra[x.path]
		v := x.value(&s.Train)
		if is := fmt.Sprint(v); v != nil && written && was != is {
			out = append(out, fmt.Sprintf("%s was %s, is %s", x.path, was, is))
		}
	}
	return strings.Join(out, "; ")
}
