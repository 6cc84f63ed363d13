package runtime

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// limits are the numbers of the settings with what each may be.
var limits = []struct {
	path string
	get  func(*Settings) float64
	ok   func(float64) bool
	want string
}{
	{"train.steps", func(s *Settings) float64 { return float64(s.Train.Steps) }, fromZero, "at least 1"},
	{"train.epochs", func(s *Settings) float64 { return s.Train.Epochs }, fromZero, "more than 0"},
	{"train.tokens", func(s *Settings) float64 { return float64(s.Train.Tokens) }, fromZero, "at least 1"},
	{"train.optimizer.lr", func(s *Settings) float64 { return s.Train.Optimizer.LR }, fromZero, "a number from 0 up"},
	{"train.optimizer.betas[0]", func(s *Settings) float64 {
		return s.Train.Optimizer.Betas[0]
	}, unit, "at least 0 and below 1"},
	{"train.optimizer.betas[1]", func(s *Settings) float64 {
		return s.Train.Optimizer.Betas[1]
	}, unit, "at least 0 and below 1"},
	{"train.optimizer.eps", func(s *Settings) float64 { return s.Train.Optimizer.Eps }, fromZero, "a number from 0 up"},
	{"train.optimizer.weight_decay", func(s *Settings) float64 {
		return s.Train.Optimizer.WeightDecay
	}, fromZero, "a number from 0 up"},
	{"train.optimizer.momentum", func(s *Settings) float64 {
		return s.Train.Optimizer.Momentum
	}, unit, "at least 0 and below 1"},
	{"train.optimizer.clip_norm", func(s *Settings) float64 {
		return s.Train.Optimizer.ClipNorm
	}, fromZero, "a number from 0 up"},
	{"train.experts.bias_rate", func(s *Settings) float64 {
		return s.Train.Experts.BiasRate
	}, fromZero, "a number from 0 up"},
	{"train.schedule.warmup", func(s *Settings) float64 {
		return float64(s.Train.Schedule.Warmup)
	}, fromZero, "steps, from 0 up"},
	{"train.schedule.min_lr", func(s *Settings) float64 {
		return s.Train.Schedule.MinLR
	}, fromZero, "a number from 0 up"},
	{"train.schedule.decay", func(s *Settings) float64 {
		return float64(s.Train.Schedule.Decay)
	}, fromZero, "steps, from 0 up"},
	{"train.eval.every", func(s *Settings) float64 {
		return float64(s.Train.Eval.Every)
	}, fromZero, "steps, from 0 up"},
	{"train.eval.batches", func(s *Settings) float64 {
		return float64(s.Train.Eval.Batches)
	}, fromZero, "a count from 0 up"},
	{"train.checkpoint.every", func(s *Settings) float64 {
		return float64(s.Train.Checkpoint.Every)
	}, fromZero, "steps, from 0 up"},
}

func unit(x float64) bool { return x >= 0 && x < 1 }

func fromZero(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// check finds values that no run can have, all of them.
func (s *Settings) check() error {
	var errs []error
	for _, l := range limits {
		if x := l.get(s); !l.ok(x) {
			errs = append(errs, fmt.Errorf("%s is %v; %s is wanted", l.path, x, l.want))
		}
	}
	t := &s.Train
	if _, ok := schedules[t.Schedule.Kind]; !ok {
		errs = append(errs, fmt.Errorf("train.schedule.kind is %q; kinds are constant, linear, cosine, wsd, "+
			"inverse_sqrt", t.Schedule.Kind))
	}
	if err := t.Precision.LossScale.check(); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains([]string{"", "skip", "stop"}, t.OnNonfinite) {
		errs = append(errs, fmt.Errorf("train.on_nonfinite is %q; it is skip or stop", t.OnNonfinite))
	}
	if len(errs) == 0 {
		errs = append(errs, s.checkLength())
	}
	return errors.Join(errs...)
}

// checkBias refuses a rate of experts' biases where their choices, which are added as gradients are, cannot be counted:
// 16 bits hold no whole number above 2048 (fp16) or 256 (bf16) exactly. The compiler refuses a job that says so.
func (p *Program) checkBias(rate float64) error {
	t := p.types()
	elem := t.Grads
	if elem.Size() > 2 {
		elem = t.Reduce
	}
	if rate <= 0 || elem.Size() > 2 || !p.hasExpertBias() {
		return nil
	}
	return fmt.Errorf("train.experts.bias_rate is %v, and the program adds gradients in %v, in which experts' "+
		"choices cannot be counted: 0 is wanted, "+
		"or a job whose train.precision has f32 for grads and reduce, compiled again", rate, elem)
}

// checkMomentum refuses a momentum if the program has no buffer for it.
func (p *Program) checkMomentum(momentum float64) error {
	if momentum <= 0 || p.Optim != SGD || p.keepsMoments() {
		return nil
	}
	return fmt.Errorf("train.optimizer.momentum is %v, and the program was compiled for 0, without a momentum "+
		"buffer: leave it at 0, "+
		"or set it in the job and compile again", momentum)
}

// checkLength wants one of the three lengths.
func (s *Settings) checkLength() error {
	t := &s.Train
	switch positive := count(t.Steps > 0, t.Epochs > 0, t.Tokens > 0); positive {
	case 1:
		return nil
	case 0:
		return errors.New("there is nothing to train: train.steps, train.epochs and train.tokens are 0; one of them " +
			"is wanted, as --steps 100")
	default:
		return fmt.Errorf("train.steps is %d, train.epochs %g and train.tokens %d; one of them is wanted", t.Steps,
			t.Epochs, t.Tokens)
	}
}

func count(is ...bool) (n int) {
	for _, b := range is {
		if b {
			n++
		}
	}
	return n
}

// nearestOr is the name that was meant, or all names where none is near.
func nearestOr[T any](name string, all map[string]T) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(n string) bool { return strings.HasPrefix(n, "-") })
	if fix := didYouMean(name, names); fix != "" {
		return fix
	}
	return "; settings are " + strings.Join(names, ", ")
}
