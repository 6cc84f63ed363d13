package runtime

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/program"
)

// compiledShaping lists the fields of the job that influence the parameters and are compiled into the program. The
// others are the settings that steer ([program.Setting]). A checkpoint stores them all, so that a run that continues it
// can report what differs.
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

// dependsOnLength reports whether the learning rates of a kind of schedule depend on the length of training.
func dependsOnLength(kind string) bool { return kind == "linear" || kind == "cosine" || kind == "wsd" }

// eachShaping calls visit with the path and value of each setting that has an influence.
func eachShaping(s *Settings, p *Program, visit func(path, value string)) {
	for _, x := range compiledShaping {
		visit(x.path, fmt.Sprint(x.value(p)))
	}
	for i := range program.SettingsTable {
		row := &program.SettingsTable[i]
		if row.Steers && (dependsOnLength(s.Train.Schedule.Kind) || !slices.Contains(lengths, row.Path)) {
			visit(row.Path, fmt.Sprint(reflect.ValueOf(s.Field(row.Path)).Elem()))
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
