package runtime

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// setters maps the path of each setting in the job file to the function that sets it.
var setters = map[string]func(s *Settings, v any) error{
	"data.root":      func(s *Settings, v any) error { return setString(&s.Data.Root, v) },
	"data.train":     func(s *Settings, v any) error { return setFiles(&s.Data.Train, v) },
	"data.valid":     setValid,
	dataOnly:         holdOutValidation,
	"data.tokenizer": func(s *Settings, v any) error { return setString(&s.Data.Tokenizer, v) },
	"train.steps":    setSteps,
	"train.epochs":   setEpochs,
	"train.tokens":   setTokens,
	"train.init":     func(s *Settings, v any) error { return setString(&s.Train.Init, v) },
	"train.seed":     setSeed,
	"train.optimizer.lr": func(s *Settings, v any) error {
		return setNumber(&s.Train.Optimizer.LR, v)
	},
	"train.optimizer.betas": func(s *Settings, v any) error {
		return setPair(&s.Train.Optimizer.Betas, v)
	},
	"train.optimizer.eps": func(s *Settings, v any) error {
		return setNumber(&s.Train.Optimizer.Eps, v)
	},
	"train.optimizer.weight_decay": func(s *Settings, v any) error {
		return setNumber(&s.Train.Optimizer.WeightDecay, v)
	},
	"train.optimizer.momentum": func(s *Settings, v any) error {
		return setNumber(&s.Train.Optimizer.Momentum, v)
	},
	"train.optimizer.clip_norm": func(s *Settings, v any) error {
		return setNumber(&s.Train.Optimizer.ClipNorm, v)
	},
	"train.experts.bias_rate": func(s *Settings, v any) error {
		return setNumber(&s.Train.Experts.BiasRate, v)
	},
	"train.schedule.kind": func(s *Settings, v any) error {
		return setString(&s.Train.Schedule.Kind, v)
	},
	"train.schedule.warmup": func(s *Settings, v any) error {
		return setInt(&s.Train.Schedule.Warmup, v)
	},
	"train.schedule.min_lr": func(s *Settings, v any) error {
		return setNumber(&s.Train.Schedule.MinLR, v)
	},
	"train.schedule.decay": func(s *Settings, v any) error {
		return setInt(&s.Train.Schedule.Decay, v)
	},
	"train.eval.every": func(s *Settings, v any) error { return setInt(&s.Train.Eval.Every, v) },
	"train.eval.batches": func(s *Settings, v any) error {
		return setInt(&s.Train.Eval.Batches, v)
	},
	"train.eval.sample": func(s *Settings, v any) error {
		return setString(&s.Train.Eval.Sample, v)
	},
	"train.checkpoint.every": func(s *Settings, v any) error {
		return setInt(&s.Train.Checkpoint.Every, v)
	},
	"train.precision.loss_scale": setLossScale,
	"train.precision.loss_scale.init": func(s *Settings, v any) error {
		return setNumber(&s.Train.Precision.LossScale.Init, v)
	},
	"train.precision.loss_scale.window": func(s *Settings, v any) error {
		return setInt(&s.Train.Precision.LossScale.Window, v)
	},
	"train.precision.loss_scale.hysteresis": func(s *Settings, v any) error {
		return setInt(&s.Train.Precision.LossScale.Hysteresis, v)
	},
	"train.precision.loss_scale.min": func(s *Settings, v any) error {
		return setNumber(&s.Train.Precision.LossScale.Min, v)
	},
	"train.precision.loss_scale.consecutive": func(s *Settings, v any) error {
		return setBool(&s.Train.Precision.LossScale.Consecutive, v)
	},
	"train.on_nonfinite": func(s *Settings, v any) error {
		return setString(&s.Train.OnNonfinite, v)
	},
}

// dataOnly is not a setting of jobs: the flag --data adds it.
const dataOnly = "--data"

// holdOutValidation replaces validation files, which belong to other data, by the last 5 % of the training file.
func holdOutValidation(s *Settings, _ any) error {
	if len(s.Data.Valid) > 0 {
		s.Data.Valid, s.Data.ValidFraction = nil, 0.05
	}
	return nil
}

// compiledPaths are the job's fields that are compiled into the program, including all fields below them.
var compiledPaths = []string{"name", "model", "cluster", "objective", "plan", "train.seq_len", "train.global_batch",
	"train.global_batch_tokens", "train.precision", "train.optimizer.kind", "train.dropout", "train.engine"}

// unsupportedPaths are fields of the contract that the runtime does not support yet.
var unsupportedPaths = []string{"train.checkpoint.keep_last", "train.checkpoint.best"}

// set changes one setting. The value null restores the value that the program was compiled with.
func setSetting(s *Settings, path string, value any, compiledIn *Settings) error {
	for _, c := range compiledPaths {
		if _, ok := setters[path]; ok {
			break
		}
		if path == c || strings.HasPrefix(path, c+".") {
			return fmt.Errorf("%s is compiled into the program; change the job and compile again", path)
		}
	}
	if slices.Contains(unsupportedPaths, path) {
		return fmt.Errorf("not supported yet: %s", path)
	}
	setter, ok := setters[path]
	if !ok {
		return fmt.Errorf("there is no setting %s%s", path, suggestSetting(path, setters))
	}
	if text, ok := value.(string); ok && strings.TrimSpace(text) == "null" {
		value = nil
	}
	if value == nil && path != dataOnly {
		resetSetting(s, path, compiledIn)
		return nil
	}
	if err := setter(s, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// lengths are the settings for the length of training. A job has one of them.
var lengths = []string{"train.steps", "train.epochs", "train.tokens"}

// reset gives a setting its value in was.
func resetSetting(s *Settings, path string, was *Settings) {
	switch {
	case path == "data.valid":
		s.Data.Valid, s.Data.ValidFraction = was.Data.Valid, was.Data.ValidFraction
		return
	case slices.Contains(lengths, path):
		s.Train.Steps, s.Train.Epochs, s.Train.Tokens = was.Train.Steps, was.Train.Epochs, was.Train.Tokens
		return
	}
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(was).Elem()
	for name := range strings.SplitSeq(path, ".") {
		i := slices.IndexFunc(reflect.VisibleFields(to.Type()), func(f reflect.StructField) bool {
			return f.Tag.Get("json") == name
		})
		to, from = to.Field(i), from.Field(i)
	}
	to.Set(from)
}

// oneLength refuses changes that set the length of training in two ways.
func oneLength(sets []setting) error {
	first := ""
	for _, c := range sets {
		switch {
		case !slices.Contains(lengths, c.path), c.path == first:
		case first == "":
			first = c.path
		default:
			return fmt.Errorf("%s and %s are both given, but only one can set the length of training (--steps sets "+
				"train.steps): leave one out", first, c.path)
		}
	}
	return nil
}

// didYouMean suggests the known name nearest to name, or returns "" if none is near. For a dotted name only the last
// part is compared, because names in one section share the rest. The last part alone also matches a full name.
func didYouMean(name string, known []string) string {
	slices.Sort(known)
	last := name[strings.LastIndexByte(name, '.')+1:]
	best, least := "", len(last)/2+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	for _, k := range known {
		if least > 1 && strings.HasSuffix(k, "."+last) {
			best, least = k, 1
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance returns the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
