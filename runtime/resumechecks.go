package runtime

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// shaping lists the settings that influence the parameters, by their paths in the job file. A checkpoint stores them,
// so that a run that continues it can report what differs. A value of nil means that the setting has no influence.
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

// compiledShaping lists those of them that are compiled into the program.
var compiledShaping = []struct {
	path  string
	value func(p *Program) any
}{
	{seqLenPath, func(p *Program) any { return p.Batch.SeqLen }},
	{"train.global_batch", func(p *Program) any { return p.Batch.GlobalBatch }},
	{"train.dropout", func(p *Program) any { return dropoutRates(&p.Model) }},
}

const seqLenPath = "train.seq_len"

// dropoutRates returns the dropout probabilities in the form of train.dropout: one number if all three are equal.
func dropoutRates(m *Model) any {
	if d := m.Dropout; d[0] != d[1] || d[1] != d[2] {
		return d
	}
	return m.Dropout[0]
}

// scheduleLength returns length if the learning-rate schedule depends on the length of training, else nil.
func scheduleLength(t *TrainSettings, length any) any {
	switch t.Schedule.Kind {
	case "linear", "cosine", "wsd":
		return length
	}
	return nil
}

// eachShaping calls visit with the path and value of each setting that has an influence.
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

// saveShaping stores these settings in the notes of a checkpoint.
func saveShaping(s *Settings, p *Program, extra map[string]string) {
	eachShaping(s, p, func(path, value string) { extra[path] = value })
}

// changedSettings lists the settings whose value differs from the checkpoint's: "train.optimizer.lr was 0.1, is 0.2".
// It returns "" if none differs or the checkpoint does not have them.
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

// otherSamples explains why the sample count of a checkpoint does not apply to this run: it lists what differs of all
// that decides the tokens of a sample. It returns "" if nothing differs.
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
	if len(out) == 0 { // the caller's Source, or a checkpoint that does not describe its samples
		out = append(out, "it is other data")
	}
	return strings.Join(out, "; ")
}

// dataExtra is the key of [run.dataText] in a checkpoint.
const dataExtra = "data"

// sampledExtra is the key of [data.Set.Sampled] in a checkpoint. Older checkpoints do not have it.
const sampledExtra = "data_sampled"

// otherContents reports that the data files have other contents than at the checkpoint; "" if they are equal or the
// checkpoint does not say. otherSamples reports files of another size.
func (r *run) otherContents(m *ckpt.Manifest) string {
	was := m.Extra[sampledExtra]
	if was == "" || r.dataHash == "" || was == r.dataHash {
		return ""
	}
	return fmt.Sprintf("%s has changed since step %d: its size is the same, but its contents differ, and training "+
		"continues on the new contents; "+
		"restore the old file, or start over with --resume never", r.files.Name(), m.Step)
}

// dataText describes the data for people, without seed and sample length; "" for the caller's own source.
func (r *run) dataText() string {
	if r.files == nil {
		return ""
	}
	return r.files.Files()
}
