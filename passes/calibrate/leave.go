package calibrate

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// leaveOneOut adds the predictions of every observation, including that of the fit without it. That fit is one
// Gauss-Newton step from the fit to all, which is exact if times are linear in the factors' logarithms.
func (f *fitter) leaveOneOut(s *solution, r *Result) error {
	for i := range f.rows {
		o := &f.rows[i]
		x := s.step(i)
		for k := range x {
			x[k] += s.x[k]
		}
		row := Row{Name: o.Name, Measured: o.StepS}
		for _, p := range []struct {
			to *float64
			m  costmodel.Measured
		}{{&row.Before, costmodel.Measured{}}, {&row.After, measured(s.keys, s.x)},
			{&row.Without, measured(s.keys, x)}} {
			predict, err := f.price(o, p.m)
			if err != nil {
				return err
			}
			*p.to = costmodel.SixDigits(float64(predict.StepS))
		}
		row.Moved, row.By = moved(s, x)
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// moved returns the factor that an observation changes most; x is the solution without it.
func moved(s *solution, x []float64) (key string, by float64) {
	const nothing = 5e-4
	for k := range x {
		if d := math.Exp(s.x[k]-x[k]) - 1; math.Abs(d) > max(nothing, math.Abs(by)) {
			key, by = s.keys[k], d
		}
	}
	return key, by
}

// MedianError returns the median of the rows' relative errors of a prediction, without signs.
func (r *Result) MedianError(prediction func(Row) float64) float64 {
	var all []float64
	for _, row := range r.Rows {
		all = append(all, math.Abs(prediction(row)/row.Measured-1))
	}
	slices.Sort(all)
	n := len(all)
	return (all[n/2] + all[(n-1)/2]) / 2
}

// Before returns the prediction of a row's step before the fit.
func Before(r Row) float64 { return r.Before }

// After returns the prediction of a row's step by the fit.
func After(r Row) float64 { return r.After }

// HeldOut returns the prediction of a row's step by a fit to the other rows.
func HeldOut(r Row) float64 { return r.Without }
