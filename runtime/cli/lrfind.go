package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// The learning-rate range test of Smith (2017), with the numbers of Lightning's Tuner.lr_find (2.5,
// pytorch/tuner/lr_finder.py).
const (
	lrFindFrom, lrFindTo = 1e-8, 1.0
	lrFindSteps          = 100
	lrFindSmooth         = 0.98 // of the exponential moving average of the losses
	lrFindDiverged       = 4    // times the lowest smoothed loss, after which the test ends
	lrFindFirst          = 10   // first points that are not suggested
)

// lrFinder is a range test: each step has a higher learning rate than the one before.
type lrFinder struct {
	rates    []float64
	losses   []float64 // smoothed
	average  float64
	lowest   float64
	diverged bool
}

// prepareLRFind changes the options to those of --lr-find: steps at growing rates from new parameters, without
// evaluations, in a folder that remove removes.
func (c *command) prepareLRFind() (remove func(), err error) {
	o := &c.options
	steps := any(lrFindSteps)
	for _, change := range o.Changes {
		if change.Path == "train.steps" {
			steps = change.Value
		}
	}
	remove, err = c.useTrialFolder(".lr-find-")
	if err != nil {
		return nil, err
	}
	o.Changes = append(o.Changes, settings.Change{Path: "train.steps", Value: steps},
		settings.Change{Path: "train.eval.every", Value: "1e12"},
		settings.Change{Path: "train.eval.batches", Value: 1},
		settings.Change{Path: "train.eval.sample", Value: ""},
		settings.Change{Path: "train.checkpoint.every", Value: 0},
		settings.Change{Path: "train.on_nonfinite", Value: "skip"},
		settings.Change{Path: "train.on_spike", Value: "warn"})
	c.finder = &lrFinder{}
	o.LRRange = [2]float64{lrFindFrom, lrFindTo}
	o.OnStep = c.finder.add
	return remove, nil
}

// add records a step. It ends the run when the loss diverges.
func (f *lrFinder) add(s report.Step) error {
	f.average = lrFindSmooth*f.average + (1-lrFindSmooth)*s.Loss
	loss := f.average / (1 - math.Pow(lrFindSmooth, float64(len(f.rates)+1)))
	if !num.Finite(loss) || len(f.rates) > 1 && loss > lrFindDiverged*f.lowest {
		f.diverged = true
		return driver.ErrStop
	}
	if len(f.rates) == 0 || loss < f.lowest {
		f.lowest = loss
	}
	f.rates, f.losses = append(f.rates, s.LR), append(f.losses, loss)
	return nil
}

// ended returns the error of the run, without the one by which the test itself ends the run.
func (f *lrFinder) ended(err error) error {
	coded := (*exit.Error)(nil)
	if f.diverged && errors.As(err, &coded) && (coded.Code == exit.OnRequest ||
		coded.Code == exit.Nonfinite) { // the state after a divergence cannot always be saved
		return nil
	}
	return err
}

// suggestion returns the rate at which the smoothed loss falls fastest; 0 if there are too few points or it never
// falls.
func (f *lrFinder) suggestion() float64 {
	best, steepest := 0.0, 0.0
	last := len(f.losses) - 2 // the last point is not used
	for i := lrFindFirst; i <= last; i++ {
		before, after := max(i-1, lrFindFirst), min(i+1, last)
		if before == after {
			break
		}
		if slope := (f.losses[after] - f.losses[before]) / float64(after-before); slope < steepest {
			best, steepest = f.rates[i], slope
		}
	}
	return best
}

// lrFindRows is how many points of the curve are printed.
const lrFindRows = 12

// print prints the curve and the suggestion for people.
func (f *lrFinder) print(w io.Writer) {
	fmt.Fprintf(w, "lr        smoothed loss\n")
	for i := range lrFindRows {
		at := i * (len(f.rates) - 1) / (lrFindRows - 1)
		if len(f.rates) == 0 || i > 0 && at == (i-1)*(len(f.rates)-1)/(lrFindRows-1) {
			continue
		}
		fmt.Fprintf(w, "%-9.2e %.4f\n", f.rates[at], f.losses[at])
	}
	end := fmt.Sprintf("the loss did not diverge up to %g", lrFindTo)
	if f.diverged {
		end = fmt.Sprintf("the loss diverged above %.2e", slices.Max(append(f.rates, 0)))
	}
	fmt.Fprintf(w, "tried     %d steps, in a folder that is removed; %s\n", len(f.rates), end)
	if rate := f.suggestion(); rate > 0 {
		fmt.Fprintf(w, "suggested --set train.optimizer.lr=%.2g, where the loss falls fastest\n", rate)
		return
	}
	fmt.Fprintf(w, "suggested nothing: the loss does not fall, or there are too few steps; try --steps %d\n",
		2*cmp.Or(len(f.rates), lrFindSteps))
}

// attrs returns the result for --log json.
func (f *lrFinder) attrs(name string) []any {
	return []any{"name", name, "suggested_lr", f.suggestion(), "diverged", f.diverged, "lr", f.rates, "loss", f.losses}
}
