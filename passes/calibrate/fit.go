package calibrate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// Observation is a plan with the measured time of a step.
type Observation struct {
	Name    string // for messages: rows.csv:3
	Problem *search.Problem
	Plan    ir.Plan
	StepS   float64
	// measured seconds of groups of parts of the step, by the names of [Groups]; nil if only the step was measured
	Parts map[string]float64
}

// Groups are the parts of a step's time that are fitted to the measured ones. A backward function may recompute values,
// so that only the sum of compute and recompute is measured.
var Groups = map[string][]string{
	"compute": {"compute", "recompute", "expert_again", "expert_empty"},
	"tp_comm": {"tp_comm"}, "cp_comm": {"cp_comm"}, "ep_comm": {"ep_comm"},
	"pp_comm": {"pp_comm", "pp_bubble"}, "dp_comm": {"dp_comm"}, "optimizer": {"optimizer"}, "other": {"other"},
}

// GroupSeconds returns the predicted time of a group.
func GroupSeconds(t costmodel.Time, group string) (sum float64) {
	for _, part := range Groups[group] {
		sum += float64(t.Part(part))
	}
	return sum
}

// target is a measured time: of an observation's step, or of a group of its parts.
type target struct {
	row   int
	group string // "" for the step
}

// Standard deviations of logarithms that the fit assumes.
const (
	noise  = 0.04 // of a measured time from a perfect model, because runs vary and the model is not perfect
	belief = 0.40 // of a factor from 1: the expected error of the catalogue's efficiencies
)

// Factor is a fitted factor.
type Factor struct {
	Key   string
	Value float64 // relative to the catalogue's
	Error float64 // relative, one standard deviation
}

// Row is an observation with its predictions, in seconds per step.
type Row struct {
	Name     string
	Measured float64
	Before   float64 // with the catalogue's figures
	After    float64 // with the fit to all observations
	Without  float64 // with the fit to all other observations

	Moved string  // the factor that this row changes most; "" if none
	By    float64 // that factor with this row over the factor without it, minus 1
}

// Result is a fit.
type Result struct {
	Factors  []Factor // the fitted factors, in the order of costmodel.MeasuredKeys
	Same     []string // factors that the observations show to be as predicted
	Open     []string // factors about which the observations say nothing
	Rows     []Row
	Measured costmodel.Measured // the factors to write; none if the fit was rejected

	Worse bool // the fit is worse than no fit on rows that it did not see, and is rejected
}

// fitter prices observations under factors.
type fitter struct {
	rows    []Observation
	targets []target
	series  map[*ir.Model]*search.Series
}

// newFitter returns a fitter of observations.
func newFitter(rows []Observation) *fitter {
	f := &fitter{rows: rows, series: map[*ir.Model]*search.Series{}}
	for i := range rows {
		f.targets = append(f.targets, target{i, ""})
		for _, group := range slices.Sorted(maps.Keys(rows[i].Parts)) {
			f.targets = append(f.targets, target{i, group})
		}
	}
	return f
}

// Fit fits the factors to observations.
func Fit(rows []Observation) (*Result, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no measured step to fit")
	}
	f := newFitter(rows)
	r := &Result{}
	s, err := f.chosen(r)
	if err != nil {
		return nil, err
	}
	for _, key := range costmodel.MeasuredKeys {
		i := slices.Index(s.keys, key)
		if i < 0 {
			continue
		}
		v := math.Exp(s.x[i])
		r.Factors = append(r.Factors, Factor{key, v, s.deviation(i) * s.spread()})
		*r.Measured.Factor(key) = round(v)
	}
	if err := f.leaveOneOut(s, r); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// judge rejects the fit if, on rows that it did not see, it predicts worse than the figures before it.
func (r *Result) judge() {
	before, without := r.MedianError(Before), r.MedianError(HeldOut)
	r.Worse = without > before
	if r.Worse {
		r.Measured = costmodel.Measured{}
	}
}

// worth is the reduction of the sum of squares that a factor must reach to be fitted: two standard deviations.
const worth = 4

// chosen adds one factor after another, each time the one that explains most, as long as one is worth it. It classifies
// the other factors: as predicted, or not determined.
func (f *fitter) chosen(r *Result) (*solution, error) {
	s, err := f.solve(nil)
	for err == nil {
		all := &solution{keys: slices.Clone(s.keys), x: slices.Clone(s.x)}
		for _, key := range costmodel.MeasuredKeys {
			if !slices.Contains(all.keys, key) {
				all.keys, all.x = append(all.keys, key), append(all.x, 0)
			}
		}
		err = f.linear(all)
		if err != nil {
			break
		}
		best, bestGain := -1, float64(worth)
		for i := len(s.keys); i < len(all.keys); i++ {
			if gain := all.gain(len(s.keys), i); gain > bestGain {
				best, bestGain = i, gain
			}
		}
		if best < 0 {
			r.sort(all, len(s.keys))
			return s, nil
		}
		s, err = f.solve(append(slices.Clone(s.keys), all.keys[best]))
	}
	return nil, err
}

// sort classifies the factors from index n on, which were not chosen.
func (r *Result) sort(all *solution, n int) {
	for i := n; i < len(all.keys); i++ {
		if all.deviation(i) < belief/2 {
			r.Same = append(r.Same, all.keys[i])
		} else {
			r.Open = append(r.Open, all.keys[i])
		}
	}
}

// gain returns the reduction of the sum of squares if factor i is fitted together with the first n.
func (s *solution) gain(n, i int) float64 {
	sub := &solution{}
	pick := func(from []float64) []float64 { return append(slices.Clone(from[:n]), from[i]) }
	sub.keys, sub.x, sub.errors = append(slices.Clone(s.keys[:n]), s.keys[i]), pick(s.x), s.errors
	sub.rows = s.rows
	for _, slopes := range s.slopes {
		sub.slopes = append(sub.slopes, pick(slopes))
	}
	step, cost := sub.step(-1), func(step []float64) (sum float64) {
		for k, x := range sub.x {
			sum += (x + step[k]) * (x + step[k]) / (belief * belief)
		}
		for r, e := range sub.errors {
			for k := range step {
				e += float64(sub.slopes[r][k] * step[k])
			}
			sum += float64(e*e) / (noise * noise)
		}
		return sum
	}
	return cost(make([]float64, len(step))) - cost(step)
}

// round rounds a factor to three digits, as in files.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// measured returns the factors of their logarithms.
func measured(keys []string, x []float64) (m costmodel.Measured) {
	for i, key := range keys {
		*m.Factor(key) = math.Exp(x[i])
	}
	return m
}

// price returns an observation's prediction.
func (f *fitter) price(o *Observation, m costmodel.Measured) (costmodel.Predict, error) {
	p := *o.Problem
	p.Cluster = p.Cluster.Scaled(m)
	s := f.series[p.Model]
	if s == nil {
		s = &search.Series{}
		f.series[p.Model] = s
	}
	predict, err := s.Price(&p, o.Plan)
	if err != nil {
		return costmodel.Predict{}, fmt.Errorf("%s: %w", o.Name, err)
	}
	return predict, nil
}

// deviations appends the errors of an observation's prediction: the logarithm of the predicted over the measured step,
// and the errors of its groups as fractions of the measured step, so that small groups count little.
func (o *Observation) deviations(p *costmodel.Predict, to []float64) []float64 {
	to = append(to, math.Log(float64(p.StepS)/o.StepS))
	for _, group := range slices.Sorted(maps.Keys(o.Parts)) {
		to = append(to, (GroupSeconds(p.Time, group)-o.Parts[group])/o.StepS)
	}
	return to
}

// solution is the end of a fit: logarithms of factors, with the slopes and residuals of the observations there.
type solution struct {
	keys   []string
	x      []float64
	slopes [][]float64 // of each target
	errors []float64   // of each target, see deviations
	rows   []target
	normal [][]float64 // of all observations, with the prior
}

// farthest is the largest allowed distance of a factor's logarithm from 0.
const farthest = 2.0

// solve minimizes the sum of squares over the factors of keys, by Gauss-Newton steps from the catalogue's figures with
// the slopes that are found there. The returned solution has the slopes where it ends. No step increases the cost, so
// it is never worse than the catalogue's figures.
//
// gonum's minimizers do not serve here (v0.17.0). Their line searches need a strong Wolfe condition, which no point
// meets at the kinks of the cost model, where one time hides another: they fail, and lose lower points that they have
// seen.
func (f *fitter) solve(keys []string) (*solution, error) {
	s := &solution{keys: keys, x: make([]float64, len(keys))}
	if err := f.linear(s); err != nil {
		return nil, err
	}
	const rounds, still = 12, 1e-4
	for range rounds {
		step := s.step(-1)
		part, err := f.advance(s, step)
		if err != nil {
			return nil, err
		}
		if part*largest(step) < still {
			break
		}
	}
	return s, f.linear(s)
}

// advance takes a step, halved until the cost falls, and returns the part of the step that was taken; 0 if the cost
// falls for no part that matters.
func (f *fitter) advance(s *solution, step []float64) (part float64, err error) {
	const least = 1.0 / 1024
	from, errors, cost := slices.Clone(s.x), s.errors, s.cost()
	for part = 1; part >= least; part /= 2 {
		for i := range step {
			s.x[i] = max(-farthest, min(farthest, from[i]+float64(part*step[i])))
		}
		if err := f.residuals(s); err != nil {
			return 0, err
		}
		if s.cost() < cost {
			return part, nil
		}
	}
	s.x, s.errors = from, errors
	return 0, nil
}

// largest returns the largest magnitude.
func largest(x []float64) (l float64) {
	for _, v := range x {
		l = max(l, math.Abs(v))
	}
	return l
}

// cost returns the sum of squares that the fit minimizes, in standard deviations: of the factors from 1 and of
// predictions from measurements.
func (s *solution) cost() (sum float64) {
	for _, x := range s.x {
		sum += float64(x*x) / (belief * belief)
	}
	for _, e := range s.errors {
		sum += float64(e*e) / (noise * noise)
	}
	return sum
}

// residuals prices all observations at the solution.
func (f *fitter) residuals(s *solution) error {
	var err error
	s.rows = f.targets
	s.errors, err = f.errorsAt(measured(s.keys, s.x))
	return err
}

// errorsAt returns the errors of all targets under factors.
func (f *fitter) errorsAt(m costmodel.Measured) (all []float64, err error) {
	for i := range f.rows {
		p, err := f.price(&f.rows[i], m)
		if err != nil {
			return nil, err
		}
		all = f.rows[i].deviations(&p, all)
	}
	return all, nil
}

// linear computes residuals and slopes at the solution.
func (f *fitter) linear(s *solution) error {
	if err := f.residuals(s); err != nil {
		return err
	}
	const h = 0.02
	s.slopes = make([][]float64, len(s.errors))
	for k := range s.keys {
		x := slices.Clone(s.x)
		x[k] += h
		up, err := f.errorsAt(measured(s.keys, x))
		if err != nil {
			return err
		}
		for i := range up {
			s.slopes[i] = append(s.slopes[i], (up[i]-s.errors[i])/h)
		}
	}
	s.normal = s.matrix(-1)
	return nil
}

// matrix returns the normal equations without one observation; -1: with all.
func (s *solution) matrix(without int) [][]float64 {
	a := make([][]float64, len(s.keys))
	for i := range a {
		a[i] = make([]float64, len(s.keys))
		a[i][i] = 1 / (belief * belief)
	}
	for r, slopes := range s.slopes {
		if s.rows[r].row == without {
			continue
		}
		for i := range a {
			for j := range a {
				a[i][j] += float64(slopes[i]*slopes[j]) / (noise * noise)
			}
		}
	}
	return a
}

// step returns where a Gauss-Newton step leads, without one observation; -1: with all.
func (s *solution) step(without int) []float64 { return solve(s.matrix(without), s.descent(without)) }

// descent returns half the negative gradient of the sum of squares, without one observation; -1: with all.
func (s *solution) descent(without int) []float64 {
	g := make([]float64, len(s.keys))
	for i := range g {
		g[i] = -s.x[i] / (belief * belief)
		for r, slopes := range s.slopes {
			if s.rows[r].row != without {
				g[i] -= float64(slopes[i]*s.errors[r]) / (noise * noise)
			}
		}
	}
	return g
}

// deviation returns the standard deviation of a factor, if the noise is as assumed.
func (s *solution) deviation(i int) float64 {
	unit := make([]float64, len(s.keys))
	unit[i] = 1
	return math.Sqrt(solve(s.normal, unit)[i])
}

// spread returns the ratio of the residuals to the assumed noise, at least 1.
func (s *solution) spread() float64 {
	sum, free := 0.0, len(s.errors)-len(s.keys)
	if free < 1 {
		return 1
	}
	for _, e := range s.errors {
		sum += float64(e*e) / (noise * noise)
	}
	return max(1, math.Sqrt(sum/float64(free)))
}

// solve solves a symmetric positive definite system.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	if n == 0 {
		return nil
	}
	m := mat.NewSymDense(n, nil)
	for i, row := range a {
		for j := range i + 1 {
			m.SetSym(i, j, row[j])
		}
	}
	var c mat.Cholesky
	if !c.Factorize(m) {
		panic("calibrate: the normal equations are not positive definite")
	}
	x := mat.NewVecDense(n, nil)
	if err := c.SolveVecTo(x, mat.NewVecDense(n, b)); err != nil {
		panic("calibrate: the normal equations have no solution: " + err.Error())
	}
	return x.RawVector().Data
}
