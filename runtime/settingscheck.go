package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// check returns an error for each value that no run can have.
func checkSettings(s *Settings) error {
	errs := s.Check()
	if err := checkLossScale(&s.Train.Precision.LossScale); err != nil {
		errs = append(errs, err)
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
func suggestSetting(name string) string {
	var names []string
	for _, row := range program.SettingsTable {
		names = append(names, row.Path)
	}
	slices.Sort(names)
	if fix := didYouMean(name, names); fix != "" {
		return fix
	}
	return "; the settings are " + strings.Join(names, ", ")
}
