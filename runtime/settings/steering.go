package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// compiledShaping lists the fields of the job that influence the parameters and are compiled into the program. The
// others are the settings that steer ([program.Setting]). A checkpoint stores them all, so that a run that continues it
// can report what differs.
var compiledShaping = []struct {
	path  string
	value func(p *program.Program) any
}{
	{SeqLenPath, func(p *program.Program) any { return p.Batch.SeqLen }},
	{"train.global_batch", func(p *program.Program) any { return p.Batch.GlobalBatch }},
	{"train.dropout", func(p *program.Program) any { return dropoutRates(&p.Model) }},
	{"train.optimizer.no_decay", func(p *program.Program) any { return matricesWithoutDecay(p) }},
	{"train.optimizer.lr_multipliers", func(p *program.Program) any { return learningRateMultipliers(p) }},
}

// SeqLenPath is the path of the sequence length in a job.
const SeqLenPath = "train.seq_len"

// dropoutRates returns the dropout probabilities in the form of train.dropout: one number if all three are equal.
func dropoutRates(m *program.Model) any {
	if d := m.Dropout; d[0] != d[1] || d[1] != d[2] {
		return d
	}
	return m.Dropout[0]
}

// matricesWithoutDecay returns the names of the matrices to which weight decay does not apply.
func matricesWithoutDecay(p *program.Program) (names []string) {
	for i := range p.Params {
		if x := &p.Params[i]; len(x.Dims) > 1 && !x.Decay {
			names = append(names, x.Name)
		}
	}
	return names
}

// learningRateMultipliers returns the parameters that have one, each as NAME=FACTOR.
func learningRateMultipliers(p *program.Program) (out []string) {
	for i := range p.Params {
		if x := &p.Params[i]; x.LRMultiplier != 0 {
			out = append(out, fmt.Sprintf("%s=%v", x.Name, x.LRMultiplier))
		}
	}
	return out
}

// dependsOnLength reports whether the learning rates of a kind of schedule depend on the length of training.
func dependsOnLength(kind string) bool { return kind == "linear" || kind == "cosine" || kind == "wsd" }

// eachShaping calls visit with the path and value of each setting that has an influence.
func eachShaping(s *program.Settings, p *program.Program, visit func(path, value string)) {
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

// SaveSteering stores these settings in the notes of a checkpoint.
func SaveSteering(s *program.Settings, p *program.Program, extra map[string]string) {
	eachShaping(s, p, func(path, value string) { extra[path] = value })
}

// Differences lists the settings whose value differs from the checkpoint's: "train.optimizer.lr was 0.1, is 0.2".
// It returns "" if none differs or the checkpoint does not have them.
func Differences(s *program.Settings, p *program.Program, extra map[string]string) string {
	var out []string
	eachShaping(s, p, func(path, is string) {
		if was, written := extra[path]; written && was != is {
			out = append(out, Difference(path, was, is))
		}
	})
	return strings.Join(out, "; ")
}

// Difference says how a value differs from a checkpoint's.
func Difference(path, was, is string) string { return fmt.Sprintf("%s was %s, is %s", path, was, is) }
