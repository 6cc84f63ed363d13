package runtime

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// setters write one setting each, by its path in the job file.
var setters = map[string]func(s *Settings, v any) error{
	"data.root":      func(s *Settings, v any) error { return setString(&s.Data.Root, v) },
	"data.train":     func(s *Settings, v any) error { return setFiles(&s.Data.Train, v) },
	"data.valid":     setValid,
	dataOnly:         holdOut,
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

// dataOnly is not a setting of jobs: it follows the flag --data.
const dataOnly = "--data"

// holdOut replaces validation files, which belong to other data, by a twentieth of the training file.
func holdOut(s *Settings, _ any) error {
	if len(s.Data.Valid) > 0 {
		s.Data.Valid, s.Data.ValidFraction = nil, 0.05
	}
	return nil
}

// compiled are the job's fields that a compiled program cannot change; those below them included.
var compiled = []string{"name", "model", "cluster", "objective", "plan", "train.seq_len", "train.global_batch",
	"train.global_batch_tokens", "train.precision", "train.optimizer.kind", "train.dropout", "train.engine"}

// later are fields of the contract that no runtime reads yet.
var later = []string{"train.checkpoint.keep_last", "train.checkpoint.best"}

// set changes one setting. null gives it back what the program was compiled with.
func (s *Settings) set(path string, value any, compiledIn *Settings) error {
	for _, c := range compiled {
		if _, ok := setters[path]; ok {
			break
		}
		if path == c || strings.HasPrefix(path, c+".") {
			return fmt.Errorf("%s is compiled into the program; change the job and compile again", path)
		}
	}
	if slices.Contains(later, path) {
		return fmt.Errorf("%s is not there yet", path)
	}
	setter, ok := setters[path]
	if !ok {
		return fmt.Errorf("no setting %s%s", path, nearestOr(path, setters))
	}
	if text, ok := value.(string); ok && strings.TrimSpace(text) == "null" {
		value = nil
	}
	if value == nil && path != dataOnly {
		s.reset(path, compiledIn)
		return nil
	}
	if err := setter(s, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// lengths are the settings of which one says how long training is.
var lengths = []string{"train.steps", "train.epochs", "train.tokens"}

// reset gives a setting the value that it has in was.
func (s *Settings) reset(path string, was *Settings) {
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

// oneLength refuses changes that say twice how long training is.
func oneLength(sets []setting) error {
	first := ""
	for _, c := range sets {
		switch {
		case !slices.Contains(lengths, c.path), c.path == first:
		case first == "":
			first = c.path
		default:
			return fmt.Errorf("%s and %s are both given, and each says how long training is (--steps is "+
				"train.steps): leave one out", first, c.path)
		}
	}
	return nil
}

// didYouMean names the nearest of the known names, or nothing where none is near. Of a dotted name the last part must
// be near, since all that stand beside it share the rest; that part alone will do where one name ends so.
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

// distance is the number of bytes to insert, delete or replace to turn a into b.
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
