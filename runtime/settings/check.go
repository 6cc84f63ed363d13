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
		errs = append(errs, checkLength(s), checkRetention(&s.Train.Checkpoint), checkRollback(&s.Train),
			checkEarlyStop(&s.Train), checkSchedule(&s.Train.Schedule))
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

// checkSchedule refuses schedule wsd without its decay, as the compiler does.
func checkSchedule(s *program.ScheduleSettings) error {
	if s.Kind != "wsd" || s.Decay > 0 {
		return nil
	}
	return errors.New("train.schedule.kind is wsd, but train.schedule.decay, the number of steps of its final decay, " +
		"is 0; set it, such as 1000")
}

// checkRetention refuses settings that have no effect without another one.
func checkRetention(c *program.CheckpointSettings) error {
	switch {
	case c.KeepEvery > 0 && c.KeepLast == 0:
		return fmt.Errorf("train.checkpoint.keep_every is %d, but without train.checkpoint.keep_last all checkpoints "+
			"are kept; set keep_last, such as 3, or leave keep_every out", c.KeepEvery)
	case c.TopK > 0 && c.Best == "":
		return fmt.Errorf("train.checkpoint.top_k is %d, but train.checkpoint.best is not set; set best to "+
			"valid_loss, or leave top_k out", c.TopK)
	}
	return nil
}

// checkRollback refuses to return to checkpoints if there are none.
func checkRollback(t *program.TrainSettings) error {
	if !t.GoesBack() || t.Checkpoint.Every > 0 {
		return nil
	}
	return fmt.Errorf("train.on_spike is %s, but train.checkpoint.every is 0, so there is no checkpoint to "+
		"return to; set train.checkpoint.every, such as 500", t.OnSpike)
}

// checkEarlyStop refuses settings that have no effect without another one.
func checkEarlyStop(t *program.TrainSettings) error {
	switch e := &t.EarlyStop; {
	case e.MinDelta > 0 && !e.IsOn():
		return fmt.Errorf("train.early_stop.min_delta is %g, but without train.early_stop.patience the run does not "+
			"stop early; set patience, such as 3, or leave min_delta out", e.MinDelta)
	case e.IsOn() && t.Eval.Every == 0:
		return errors.New("train.early_stop is set, but train.eval.every is 0, so the validation loss is measured " +
			"only at the end; set train.eval.every, such as 100")
	}
	return nil
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
