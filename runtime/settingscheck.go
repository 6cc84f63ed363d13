package runtime

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// limits are the allowed ranges of numeric settings.
var limits = []struct {
	path string
	get  func(*Settings) float64
	ok   func(float64) bool
	want string
}{
	{"train.steps", func(s *Settings) float64 { return float64(s.Train.Steps) }, fromZero, "at least 1"},
	{"train.epochs", func(s *Settings) float64 { return s.Train.Epochs }, fromZero, "more than 0"},
	{"train.tokens", func(s *Settings) float64 { return float64(s.Train.Tokens) }, fromZero, "at least 1"},
	{"train.optimizer.lr", func(s *Settings) float64 { return s.Train.Optimizer.LR }, fromZero, "at least 0"},
	{"train.optimizer.betas[0]", func(s *Settings) float64 {
		return s.Train.Optimizer.Betas[0]
	}, unit, "at least 0 and below 1"},
	{"train.optimizer.betas[1]", func(s *Settings) float64 {
		return s.Train.Optimizer.Betas[1]
	}, unit, "at least 0 and below 1"},
	{"train.optimizer.eps", func(s *Settings) float64 { return s.Train.Optimizer.Eps }, fromZero, "at least 0"},
	{"train.optimizer.weight_decay", func(s *Settings) float64 {
		return s.Train.Optimizer.WeightDecay
	}, fromZero, "at least 0"},
	{"train.optimizer.momentum", func(s *Settings) float64 {
		return s.Train.Optimizer.Momentum
	}, unit, "at least 0 and below 1"},
	{"train.optimizer.clip_norm", func(s *Settings) float64 {
		return s.Train.Optimizer.ClipNorm
	}, fromZero, "at least 0"},
	{"train.experts.bias_rate", func(s *Settings) float64 {
		return s.Train.Experts.BiasRate
	}, fromZero, "at least 0"},
	{"train.schedule.warmup", func(s *Settings) float64 {
		return float64(s.Train.Schedule.Warmup)
	}, fromZero, "a number of steps, at least 0"},
	{"train.schedule.min_lr", func(s *Settings) float64 {
		return s.Train.Schedule.MinLR
	}, fromZero, "at least 0"},
	{"train.schedule.decay", func(s *Settings) float64 {
		return float64(s.Train.Schedule.Decay)
	}, fromZero, "a number of steps, at least 0"},
	{"train.eval.every", func(s *Settings) float64 {
		return float64(s.Train.Eval.Every)
	}, fromZero, "a number of steps, at least 0"},
	{"train.eval.batches", func(s *Settings) float64 {
		return float64(s.Train.Eval.Batches)
	}, fromZero, "at least 0"},
	{"train.checkpoint.every", func(s *Settings) float64 {
		return float64(s.Train.Checkpoint.Every)
	}, fromZero, "a number of steps, at least 0"},
}

func unit(x float64) bool { return x >= 0 && x < 1 }

func fromZero(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// check returns an error for each value that no run can have.
func checkSettings(s *Settings) error {
	var errs []error
	for _, l := range limits {
		if x := l.get(s); !l.ok(x) {
			errs = append(errs, fmt.Errorf("%s is %v; it must be %s", l.path, x, l.want))
		}
	}
	t := &s.Train
	if _, ok := schedules[t.Schedule.Kind]; !ok {
		errs = append(errs, fmt.Errorf("train.schedule.kind is %q; it must be constant, linear, cosine, wsd or "+
			"inverse_sqrt", t.Schedule.Kind))
	}
	if err := checkLossScale(&t.Precision.LossScale); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains([]string{"", "skip", "stop"}, t.OnNonfinite) {
		errs = append(errs, fmt.Errorf("train.on_nonfinite is %q; it must be skip or stop", t.OnNonfinite))
	}
	if len(errs) == 0 {
		errs = append(errs, checkLength(s))
	}
	return errors.Join(errs...)
}

// checkBias refuses a bias rate if the experts' choices cannot be counted exactly. They are summed as gradients are,
// and 16 bits hold no whole number above 2048 (fp16) or 256 (bf16) exactly. The compiler refuses such a job, too.
func (p *Program) checkBias(rate float64) error {
	t := p.types()
	elem := t.Grads
	if elem.Size() > 2 {
		elem = t.Reduce
	}
	if rate <= 0 || elem.Size() > 2 || !p.hasExpertBias() {
		return nil
	}
	return fmt.Errorf("train.experts.bias_rate is %v, but the program adds gradients in %v, which cannot count "+
		"experts' choices exactly: use 0, "+
		"or set grads and reduce of train.precision to f32 in the job and compile again", rate, elem)
}

// checkMomentum refuses a momentum if the program has no buffer for it.
func (p *Program) checkMomentum(momentum float64) error {
	if momentum <= 0 || p.Optim != SGD || p.hasMoments() {
		return nil
	}
	return fmt.Errorf("train.optimizer.momentum is %v, but the program was compiled for 0, without a momentum "+
		"buffer: leave it at 0, "+
		"or set it in the job and compile again", momentum)
}

// checkLength requires exactly one of the three lengths.
func checkLength(s *Settings) error {
	t := &s.Train
	switch positive := countTrue(t.Steps > 0, t.Epochs > 0, t.Tokens > 0); positive {
	case 1:
		return nil
	case 0:
		return errors.New("there is nothing to train: train.steps, train.epochs and train.tokens are 0; set one of " +
			"them, such as --steps 100")
	default:
		return fmt.Errorf("train.steps is %d, train.epochs %g and train.tokens %d; set only one of them", t.Steps,
			t.Epochs, t.Tokens)
	}
}

func countTrue(is ...bool) (n int) {
	for _, b := range is {
		if b {
			n++
		}
	}
	return n
}

// suggestSetting returns the nearest setting's name as a suggestion, or lists all settings if none is near.
func suggestSetting[T any](name string, all map[string]T) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(n string) bool { return strings.HasPrefix(n, "-") })
	if fix := didYouMean(name, names); fix != "" {
		return fix
	}
	return "; the settings are " + strings.Join(names, ", ")
}
