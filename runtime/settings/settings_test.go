package settings

import (
	"reflect"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

func TestSet(t *testing.T) {
	s := program.Settings{Train: program.TrainSettings{Steps: 5}}
	for path, value := range map[string]any{
		"train.optimizer.lr": "3e-4", "train.optimizer.betas": "[0.9, 0.95]", "train.seed": "18446744073709551615",
		"train.tokens": "300B", "data.train": "[a.txt, {path: b.bin, weight: 2.5}]", "data.valid": 0.05,
		"train.schedule.warmup": 2000, "train.eval.sample": `"The light"`, "train.checkpoint.every": "1K",
	} {
		if err := Set(&s, path, value, &program.Settings{}); err != nil {
			t.Error(err)
		}
	}
	want := program.Settings{
		Data: program.DataSettings{Train: []program.File{{Path: "a.txt", Weight: 1}, {Path: "b.bin", Weight: 2.5}},
			ValidFraction: 0.05},
		Train: program.TrainSettings{Tokens: 300e9, Seed: 1<<64 - 1, Optimizer: program.OptimizerSettings{LR: 3e-4,
			Betas: [2]float64{0.9, 0.95}},
			Schedule: program.ScheduleSettings{Warmup: 2000}, Eval: program.EvalSettings{Sample: "The light"},
			Checkpoint: program.CheckpointSettings{Every: 1000}},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("settings are\n%+v, want\n%+v", s, want)
	}
}

func TestSetMessages(t *testing.T) {
	const all = "data.documents, data.root, data.sampling, data.tokenizer, data.train, data.valid, data.weights, " +
		"train.checkpoint.async, train.checkpoint.best, " +
		"train.checkpoint.every, train.checkpoint.every_epochs, train.checkpoint.every_minutes, " +
		"train.checkpoint.keep_every, train.checkpoint.keep_last, train.checkpoint.top_k, " +
		"train.early_stop.metric, train.early_stop.min_delta, train.early_stop.patience, " +
		"train.epochs, train.eval.batches, train.eval.every, train.eval.sample, " +
		"train.eval.sample_every, train.eval.sample_tokens, train.eval.temperature, train.eval.top_k, " +
		"train.experts.bias_rate, train.init, " +
		"train.on_nonfinite, train.on_spike, train.optimizer.betas, " +
		"train.optimizer.clip_norm, train.optimizer.eps, train.optimizer.lr, train.optimizer.momentum, " +
		"train.optimizer.weight_decay, " +
		"train.precision.loss_scale, train.precision.loss_scale.consecutive, train.precision.loss_scale.hysteresis, " +
		"train.precision.loss_scale.init, train.precision.loss_scale.min, train.precision.loss_scale.window, " +
		"train.schedule.decay, train.schedule.kind, train.schedule.min_lr, train.schedule.warmup, train.seed, " +
		"train.steps, train.tokens"
	for _, test := range []struct {
		path  string
		value any
		want  string
	}{
		{"lr", 1, "there is no setting lr; did you mean train.optimizer.lr?"},
		{"train.optimizer.lrr", 1, "there is no setting train.optimizer.lrr; did you mean train.optimizer.lr?"},
		{"colour", 1, "there is no setting colour; the settings are " + all},
		{"train.bogus", 1, "there is no setting train.bogus; the settings are " + all}, // and not train.epochs
		{"plan.tp", 2, "plan.tp is compiled into the program; change the job and compile again"},
		{"train.seq_len", 2, "train.seq_len is compiled into the program; change the job and compile again"},
		{"train.steps", "ten", `train.steps: "ten" is not a number`},
		{"train.steps", 1.5, "train.steps: 1.5 is not a whole number"},
		{"train.steps", "010", `train.steps: "010" begins with a zero`},
		{"train.optimizer.betas", "0.9", "train.optimizer.betas: 0.9 is not a list of two numbers"},
		{"train.seed", "-1", `train.seed: "-1" must be a whole number of at least 0`},
		{"train.init", 7, "train.init: 7 is not text"},
		{"train.optimizer.betas", "[0.9, null]", `train.optimizer.betas: "null" is not a number`},
		{"train.optimizer.betas", []any{0.9, nil}, "train.optimizer.betas: <nil> is not a number"},
		{"data.train", "{file: x}", `data.train: "file" is not path or weight`},
	} {
		var s program.Settings
		if err := Set(&s, test.path, test.value, &s); err == nil || err.Error() != test.want {
			t.Errorf("set %s=%v: %v, want %s", test.path, test.value, err, test.want)
		}
	}
}

// null undoes what was set before it: every setting is again what the program was compiled with.
func TestNullIsWhatWasCompiledIn(t *testing.T) {
	was := program.Settings{
		Data: program.DataSettings{Root: "r", Train: []program.File{{Path: "a", Weight: 1}},
			Valid: []program.File{{Path: "v", Weight: 1}}, Tokenizer: "bytes"},
		Train: program.TrainSettings{Epochs: 2, Init: "folder", Seed: 7, OnNonfinite: "stop",
			Optimizer: program.OptimizerSettings{LR: 1, Betas: [2]float64{0.9, 0.95}, Eps: 2, WeightDecay: 3,
				Momentum: 0.5,
				ClipNorm: 4},
			Schedule:   program.ScheduleSettings{Kind: "wsd", Warmup: 1, MinLR: 5, Decay: 2},
			Eval:       program.EvalSettings{Every: 3, Batches: 4, Sample: "s"},
			Checkpoint: program.CheckpointSettings{Every: 5},
			Precision:  program.PrecisionSettings{LossScale: DynamicScale}},
	}
	for _, row := range program.SettingsTable {
		path := row.Path
		for _, null := range []any{nil, "null", " null "} {
			s, changed := was, any("9")
			if path == "train.optimizer.betas" {
				changed = []float64{0.1, 0.2}
			}
			if path == "train.precision.loss_scale.consecutive" || path == "train.checkpoint.async" {
				changed = true
			}
			if err := Set(&s, path, changed, &was); err != nil || reflect.DeepEqual(s, was) {
				t.Errorf("%s=%v changed nothing, %v", path, changed, err)
			}
			if err := Set(&s, path, null, &was); err != nil || !reflect.DeepEqual(s, was) {
				t.Errorf("%s=%v: %v\n%+v, want\n%+v", path, null, err, s, was)
			}
		}
	}
}

// Processes of a launch may have different paths of data.
func TestCommonText(t *testing.T) {
	changes := []Change{{"data.train", nil}, {DataOnly, nil}, {"train.seed", 1}}
	if got := CommonText(changes); got != "train.seed=1" {
		t.Errorf("what all are to be started with: %q", got)
	}
}
func TestLossScaleSettings(t *testing.T) {
	var s program.Settings
	for _, c := range []struct {
		path  string
		value any
		want  program.LossScaleSettings
	}{
		{"train.precision.loss_scale", "dynamic", DynamicScale},
		{"train.precision.loss_scale.window", 7, program.LossScaleSettings{Kind: "dynamic", Init: 65536, Window: 7,
			Hysteresis: 2, Min: 1, Consecutive: false}},
		{"train.precision.loss_scale.consecutive", "true", program.LossScaleSettings{Kind: "dynamic", Init: 65536,
			Window: 7, Hysteresis: 2, Min: 1, Consecutive: true}},
		{"train.precision.loss_scale", 1024, program.LossScaleSettings{Kind: "static", Init: 1024}},
		{"train.precision.loss_scale", "none", program.LossScaleSettings{Kind: "none"}},
	} {
		if err := Set(&s, c.path, c.value, &program.Settings{}); err != nil || s.Train.Precision.LossScale != c.want {
			t.Errorf("%s=%v: %+v, %v", c.path, c.value, s.Train.Precision.LossScale, err)
		}
	}
	for want, bad := range map[string]program.LossScaleSettings{"must be above 0": {Kind: "static"},
		"window 0": {Kind: "dynamic", Init: 1, Hysteresis: 1, Min: 1}} {
		if err := checkLossScale(&bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := Set(&s, "train.precision.params", "f32", &program.Settings{}); err == nil ||
		!strings.Contains(err.Error(), "compiled") {
		t.Errorf("params: %v", err)
	}
}
