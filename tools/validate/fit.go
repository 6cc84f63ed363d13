package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/planc-dev/planc/passes/validate"
)

// sample is a row of the fit with its weight.
type sample struct {
	row    *validate.Row
	weight float64
}

// samples returns the timed rows that are not held out. The weight of a source is the root of its number of rows, so
// that a table of a thousand similar rows does not outweigh ten different ones. Of such a table, rows at equal
// distances are taken.
func samples(t *tables) []sample {
	bySource := map[string][]*validate.Row{}
	var order []string
	asker := validate.NewAsker()
	for i := range t.rows {
		r := &t.rows[i]
		if t.unseen(r) || r.StepS() == 0 {
			continue
		}
		if _, err := asker.Question(r); err != nil {
			continue
		}
		if bySource[r.Source()] == nil {
			order = append(order, r.Source())
		}
		bySource[r.Source()] = append(bySource[r.Source()], r)
	}
	var out []sample
	for _, name := range order {
		rows := bySource[name]
		n := min(len(rows), 120)
		for i := range n {
			out = append(out, sample{rows[i*len(rows)/n], math.Sqrt(math.Sqrt(float64(n)) / float64(n))})
		}
	}
	return out
}

// huber is the error, in logarithms, beyond which a row's influence does not grow.
const huber = 0.10

// fit moves the constants with Gauss-Newton steps: logarithms of predicted over measured times are nearly linear in
// the logarithms of the constants. Only the named constants move, or all if none is named.
func fit(t *tables, only []string, rounds int, log io.Writer) error {
	all, ps := samples(t), params()
	if len(only) > 0 {
		ps = slices.DeleteFunc(ps, func(p param) bool { return !slices.Contains(only, p.name) })
	}
	for _, p := range ps {
		*p.at = p.prior
	}
	asker := validate.NewAsker()
	for round := range rounds {
		base, err := residuals(asker, all)
		if err != nil {
			return err
		}
		fmt.Fprintf(log, "round %d: %d rows, weighted mean error %.4f\n", round, len(all), meanError(all, base))
		jac := mat.NewDense(len(all)+len(ps), len(ps), nil)
		rhs := mat.NewVecDense(len(all)+len(ps), nil)
		for i, v := range base {
			w := all[i].weight * math.Sqrt(min(1, huber/math.Abs(v)))
			rhs.SetVec(i, -w*v)
		}
		const h = 0.02
		for j, p := range ps {
			old := *p.at
			*p.at = old * math.Exp(h)
			moved, err := residuals(asker, all)
			*p.at = old
			if err != nil {
				return err
			}
			for i, v := range moved {
				w := all[i].weight * math.Sqrt(min(1, huber/math.Abs(base[i])))
				jac.Set(i, j, w*(v-base[i])/h)
			}
			const scale = 0.10 // noise of a row, relative to which priors are weighted
			jac.Set(len(all)+j, j, scale/p.sigma)
			rhs.SetVec(len(all)+j, -scale/p.sigma*math.Log(old/p.prior))
		}
		var step mat.VecDense
		if err := step.SolveVec(jac, rhs); err != nil {
			return err
		}
		for j, p := range ps {
			*p.at *= math.Exp(max(-0.4, min(0.4, step.AtVec(j))))
		}
	}
	base, err := residuals(asker, all)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "at the end: weighted mean error %.4f\n", meanError(all, base))
	for _, p := range ps {
		fmt.Fprintf(log, "%-24s %.4g (from %.4g)\n", p.name, *p.at, p.prior)
	}
	return nil
}

func residuals(a *validate.Asker, all []sample) ([]float64, error) {
	a.Refresh()
	out := make([]float64, len(all))
	for i, s := range all {
		p, err := a.Price(s.row)
		if err != nil {
			return nil, err
		}
		out[i] = math.Log(p.Predicted / *p.Measured)
	}
	return out, nil
}

func meanError(all []sample, res []float64) float64 {
	sum, weight := 0.0, 0.0
	for i, v := range res {
		w := all[i].weight * all[i].weight
		sum += w * math.Abs(v)
		weight += w
	}
	return sum / weight
}
