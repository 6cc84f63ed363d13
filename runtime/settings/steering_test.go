package settings

import (
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// Fields that are compiled into the program and influence training are compared, too.
func TestDifferencesOfPrograms(t *testing.T) {
	compiled := func(batch, seq int, drop [3]float64) *program.Program {
		return &program.Program{Batch: program.BatchLayout{GlobalBatch: batch, SeqLen: seq},
			Model: program.Model{Dropout: drop}}
	}
	was, s := map[string]string{}, &program.Settings{}
	SaveSteering(s, compiled(8, 64, [3]float64{0.1, 0.1, 0.1}), was)
	for _, c := range []struct {
		is   *program.Program
		want string
	}{
		{compiled(8, 64, [3]float64{0.1, 0.1, 0.1}), ""},
		{compiled(16, 64, [3]float64{0.1, 0.1, 0.1}), "train.global_batch was 8, is 16"},
		{compiled(8, 128, [3]float64{0.1, 0.1, 0.1}), "train.seq_len was 64, is 128"},
		{compiled(8, 64, [3]float64{}), "train.dropout was 0.1, is 0"},
		{compiled(8, 64, [3]float64{0, 0.1, 0.2}), "train.dropout was 0.1, is [0 0.1 0.2]"},
		{compiled(4, 32, [3]float64{}), "train.seq_len was 64, is 32; train.global_batch was 8, is 4; train.dropout " +
			"was 0.1, is 0"},
	} {
		if got := Differences(s, c.is, was); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := Differences(s, compiled(4, 32, [3]float64{}), map[string]string{}); got != "" {
		t.Errorf("of a checkpoint that does not say: %q", got)
	}
}

// The length of training counts only if the learning rates depend on it.
func TestLengthCountsIfTheScheduleDependsOnIt(t *testing.T) {
	scheduled := func(kind string, steps int) *program.Settings {
		return &program.Settings{Train: program.TrainSettings{Steps: steps,
			Schedule: program.ScheduleSettings{Kind: kind}}}
	}
	for _, c := range []struct {
		was, is string
		want    string
	}{
		{"cosine", "cosine", "train.steps was 10, is 20"}, {"linear", "linear", "train.steps was 10, is 20"},
		{"wsd", "wsd", "train.steps was 10, is 20"},
		{"constant", "constant", ""}, {"inverse_sqrt", "inverse_sqrt", ""},
		{"constant", "cosine", "train.schedule.kind was constant, is cosine"}, {"cosine", "constant",
			"train.schedule.kind was cosine, is constant"},
	} {
		extra := map[string]string{}
		SaveSteering(scheduled(c.was, 10), &program.Program{}, extra)
		if got := Differences(scheduled(c.is, 20), &program.Program{}, extra); got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.was, c.is, got, c.want)
		}
	}
}
