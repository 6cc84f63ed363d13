package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// Check returns an error for each value that no run can have.
func Check(s *program.Settings) error {
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
func checkBias(p *program.Program, rate float64) error {
	t := p.TensorTypes()
	elem := t.Grads
	if elem.Size() > 2 {
		elem = t.Reduce
	}
	if rate <= 0 || elem.Size() > 2 || !p.HasExpertBias() {
		return nil
	}
	return fmt.Errorf("train.experts.bias_rate is %v, but the program adds gradients in %v, which cannot count "+
		"experts' choices exactly: use 0, "+
		"or set grads and reduce of train.precision to f32 in the job and compile again", rate, elem)
}

// checkMomentum refuses a momentum if the program has no buffer for it.
func checkMomentum(p *program.Program, momentum float64) error {
	if momentum <= 0 || p.Optim != program.SGD || p.HasMoments() {
		return nil
	}
	return fmt.Errorf("train.optimizer.momentum is %v, but the program was compiled for 0, without a momentum "+
		"buffer: leave it at 0, "+
		"or set it in the job and compile again", momentum)
}

// checkLength requires exactly one of the three lengths.
func checkLength(s *program.Settings) error {
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
	if fix := DidYouMean(name, names); fix != "" {
		return fix
	}
	return "; the settings are " + strings.Join(names, ", ")
}

// Learning rates above which training practically always diverges.
const highAdam, highSGD = 0.1, 10.0

// HighRate returns a warning for a learning rate that is most likely a typing error, with a suggestion; "" if it is
// plausible.
func HighRate(o *program.OptimizerSettings, kind program.OptimizerKind) string {
	limit := highAdam
	if kind == program.SGD {
		limit = highSGD
	}
	if o.LR <= limit {
		return ""
	}
	text := fmt.Sprintf("train.optimizer.lr is %g; %v usually diverges above %g", o.LR, kind, limit)
	if exp := math.Floor(math.Log10(o.LR)); exp >= 1 { // 3e4 is 3e-4 without its minus sign
		text += "; did you mean " + strconv.FormatFloat(o.LR/math.Pow(10, exp), 'g', 3, 64) +
			fmt.Sprintf("e-%.0f", exp) + "?"
	}
	return text
}
