package megatron

import (
	"fmt"
	"math"
)

// rateReader reads the schedule of the learning rate.
// Source: Megatron-Core 0.19.2, training/training.py: get_optimizer_param_scheduler; core/optimizer_param_scheduler.py.
type rateReader struct{ *importer }

// decayKinds maps the styles of learning-rate decay to planc's schedules, except WSD.
var decayKinds = map[string]string{"constant": "constant", "linear": "linear", "cosine": "cosine",
	"inverse-square-root": "inverse_sqrt"}

const (
	styleDest    = "lr_decay_style"
	fractionDest = "lr_warmup_fraction"
)

// read sets the schedule. planc's rises from 0, and reaches its end at the last step.
func (im *rateReader) read() {
	style := im.s.text(styleDest)
	switch kind := decayKinds[style]; {
	case style == "WSD":
		im.stable()
	case kind != "":
		im.set("train.schedule.kind", kind, styleDest)
	default:
		im.note(styleDest, "planc reads constant, linear, cosine, inverse-square-root and WSD")
	}
	im.warmUp()
	if style != "constant" {
		im.end()
	}
	if im.s.float("min_lr") > 0 {
		im.set("train.schedule.min_lr", im.s.text("min_lr"), "min_lr")
	}
	if im.s.float("lr_warmup_init") > 0 {
		im.note("lr_warmup_init", "planc's learning rate rises from 0")
	}
}

// count returns a number of steps that is given in iterations or in samples, and the setting that says it; 0 if neither
// does.
func (im *rateReader) count(iterations, samples string) (n int, dest string) {
	batch := im.s.number(globalDest)
	switch {
	case im.s.number(iterations) > 0:
		return im.s.number(iterations), iterations
	case im.s.number(samples) > 0 && batch > 0:
		return max(1, im.s.number(samples)/batch), samples
	case im.s.number(samples) > 0:
		im.note(samples, fmt.Sprintf("planc needs %s to read it", im.name(globalDest)))
	}
	return 0, iterations
}

// decaySteps returns the step at which the decay ends, and the setting that says it; 0 if none does.
func (im *rateReader) decaySteps() (n int, dest string) {
	n, dest = im.count("lr_decay_iters", "lr_decay_samples")
	if n > 0 {
		return n, dest
	}
	return im.s.steps()
}

// warmUp sets the steps in which the rate rises.
func (im *rateReader) warmUp() {
	n, dest := im.count("lr_warmup_iters", "lr_warmup_samples")
	fraction := im.s.float(fractionDest)
	steps, _ := im.decaySteps()
	switch {
	case fraction > 0 && steps == 0:
		n = 0
		im.note(fractionDest, fmt.Sprintf("planc needs the number of steps to read it: add %s", im.name("train_iters")))
	case fraction > 0:
		n, dest = int(math.Round(fraction*float64(steps))), fractionDest
	}
	if n > 0 {
		im.set("train.schedule.warmup", n, dest)
	}
}

// end notes a decay that does not end at the last step.
func (im *rateReader) end() {
	decay, dest := im.decaySteps()
	last, _ := im.s.steps()
	switch {
	case decay == last || !im.s.has(dest):
		im.used(dest)
	case last > 0:
		im.note(dest, fmt.Sprintf("planc's decay ends at the last step %d, and this one at step %d", last, decay))
	default:
		im.note(dest, "planc's decay ends at the last step")
	}
}

// stable sets a schedule that stays at its peak before it decays.
func (im *rateReader) stable() {
	const decayStyle = "lr_wsd_decay_style"
	n, dest := im.count("lr_wsd_decay_iters", "lr_wsd_decay_samples")
	if n == 0 {
		im.note(styleDest, fmt.Sprintf("WSD needs %s", im.name("lr_wsd_decay_iters")))
		return
	}
	im.set("train.schedule.kind", "wsd", styleDest)
	im.set("train.schedule.decay", n, dest)
	style := im.s.text(decayStyle)
	switch {
	case style == "linear":
		im.used(decayStyle)
	case im.s.has(decayStyle):
		im.note(decayStyle, "planc's decay is linear")
	default:
		im.note(styleDest, "planc's decay is linear, and this one is "+style)
	}
}
