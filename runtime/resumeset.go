package runtime

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// shaping are the settings that decide what a step does to the parameters, by their paths in the job file. A checkpoint
// has them, so that a run which continues it can say what is no longer as it was. A value of nil decides nothing.
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
	{"train.steps", func(t *TrainSettings) any { return scheduleLength(t, t.Steps) }},
	{"train.epochs", func(t *TrainSettings) any { return scheduleLength(t, t.Epochs) }},
	{"train.tokens", func(t *TrainSettings) any { return scheduleLength(t, t.Tokens) }},
	{"train.on_nonfinite", func(t *TrainSettings) any { return t.OnNonfinite }},
}

// compiledShaping are those of them that are compiled into the program.
var compiledShaping = []struct {
	path  string
	value func(p *Program) any
}{
	{seqLenPath, func(p *Program) any { return p.Batch.SeqLen }},
	{"train.global_batch", func(p *Program) any { return p.Batch.GlobalBatch }},
	{"train.dropout", func(p *Program) any { return dropoutRates(&p.Model) }},
}

const seqLenPath = "train.seq_len"

// dropoutRates are the chances of dropout: one where all three are the same, as train.dropout has them.
func dropoutRates(m *Model) any {
	if d := m.Dropout; d[0] != d[1] || d[1] != d[2] {
		return d
	}
	return m.Dropout[0]
}

// scheduleLength is a length of training where the learning rate falls towards its end, and nil where no step's rate
// depends on it.
func scheduleLength(t *TrainSettings, length any) any {
	switch t.Schedule.Kind {
	case "linear", "cosine", "wsd":
		return length
	}
	return nil
}

// eachShaping calls visit with the path and value of each that decides something.
func eachShaping(s *Settings, p *Program, visit func(path, value string)) {
	for _, x := range compiledShaping {
		visit(x.path, fmt.Sprint(x.value(p)))
	}
	for _, x := range shaping {
		if v := x.value(&s.Train); v != nil {
			visit(x.path, fmt.Sprint(v))
		}
	}
}

// saveShaping adds them to what a checkpoint says beside its tensors.
func saveShaping(s *Settings, p *Program, extra map[string]string) {
	eachShaping(s, p, func(path, value string) { extra[path] = value })
}

// changedSettings says which of them a checkpoint has otherwise: "train.optimizer.lr was 0.1, is 0.2"; "" where none,
// or where it is of a program that did not write them.
func changedSettings(s *Settings, p *Program, extra map[string]string) string {
	var out []string
	eachShaping(s, p, func(path, is string) {
		if was, written := extra[path]; written && was != is {
			out = append(out, difference(path, was, is))
		}
	})
	return strings.Join(out, "; ")
}

func difference(path, was, is string) string { return fmt.Sprintf("%s was %s, is %s", path, was, is) }

// otherSamples says why a checkpoint's count of samples is not one of this run's: what differs of all that decides
// which tokens a sample has; "" where nothing does.
func (r *run) otherSamples(m *ckpt.Manifest) string {
	if m.Data == r.dataID() {
		return ""
	}
	var out []string
	if is := r.s.Train.Seed; m.Seed != is {
		out = append(out, difference("train.seed", fmt.Sprint(m.Seed), fmt.Sprint(is)))
	}
	if was, is := m.Extra[seqLenPath], fmt.Sprint(r.p.Batch.SeqLen); was != "" && was != is {
		out = append(out, difference(seqLenPath, was, is))
	}
	if was, is := m.Extra[dataExtra], r.dataText(); was != is && was != "" && is != "" {
		out = append(out, difference("the data", was, is))
	}
	if len(out) == 0 { // a source of the user's own, or a checkpoint that does not say what its samples were
		out = append(out, "the data is another")
	}
	return strings.Join(out, "; ")
}

// dataExtra is where a checkpoint has [run.dataText].
const dataExtra = "data"

// sampledExtra is where a checkpoint has [data.Set.Sampled] of its run. Older checkpoints lack it.
const sampledExtra = "data_sampled"

// otherContents says that the data files have other contents than those that the checkpoint was trained on; "" if they
// have the same, or if nothing says what they were. Files of another size are otherSamples's.
func (r *run) otherContents(m *ckpt.Manifest) string {
	was := m.Extra[sampledExtra]
	if was == "" || r.dataHash == "" || was == r.dataHash {
		return ""
	}
	return fmt.Sprintf("%s has changed since step %d: its size is the same, but its contents differ, and training "+
		"continues on the new contents; "+
		"put the old file back, or start over with --resume never", r.files.Name(), m.Step)
}

// dataText is what people are told of the data, without its seed and the length of samples; "" of a source of the
// user's own.
func (r *run) dataText() string {
	if r.files == nil {
		return ""
	}
	return r.files.Files()
}
