package validate

import (
	"cmp"
	"math"
	"slices"
)

// Summary compares step times.
type Summary struct {
	N         int     `json:"n"`
	MedianAPE float64 `json:"median_ape"`
	MeanAPE   float64 `json:"mean_ape"`
	Bias      float64 `json:"bias"`
	Spearman  float64 `json:"spearman"`
	PairOrder float64 `json:"pair_order"`
	Regret    float64 `json:"regret"`
}

// MemorySummary compares memory.
type MemorySummary struct {
	N         int     `json:"n"`
	MedianAPE float64 `json:"median_ape"`
	MeanAPE   float64 `json:"mean_ape"`
	Bias      float64 `json:"bias"`
}

// FitSummary tells how often "fits" and "does not fit" were predicted correctly: the mean of both rates.
type FitSummary struct {
	N                int     `json:"n"`
	BalancedAccuracy float64 `json:"balanced_accuracy"`
}

// distinct is the smallest difference of two measured times, as a fraction, for their order to count.
const distinct = 0.03

// sum fills in the summaries.
func (r *Report) sum() {
	var timed []*Priced
	bySource := map[string][]*Priced{}
	var memory []float64
	for i := range r.Rows {
		p := &r.Rows[i]
		if p.Error != nil {
			timed = append(timed, p)
			bySource[p.Source] = append(bySource[p.Source], p)
		}
		if p.MemoryError != nil {
			memory = append(memory, *p.MemoryError)
		}
	}
	r.Summary = Summarise(timed)
	for name, rows := range bySource {
		r.BySource[name] = Summarise(rows)
	}
	r.Memory.N = len(memory)
	r.Memory.MedianAPE, r.Memory.MeanAPE, r.Memory.Bias = errorsOf(memory)
	r.Fit = fitOf(r.Rows)
}

// Summarise compares rows with measured times.
func Summarise(rows []*Priced) Summary {
	s := Summary{N: len(rows)}
	var errs []float64
	groups := map[group][]*Priced{}
	for _, p := range rows {
		errs = append(errs, *p.Error)
		groups[p.group] = append(groups[p.group], p)
	}
	s.MedianAPE, s.MeanAPE, s.Bias = errorsOf(errs)
	s.Spearman, s.PairOrder, s.Regret = ordersOf(groups)
	return s
}

// errorsOf returns the median and mean of absolute errors, and the mean of the errors.
func errorsOf(errs []float64) (median, mean, bias float64) {
	if len(errs) == 0 {
		return 0, 0, 0
	}
	abs := make([]float64, len(errs))
	for i, e := range errs {
		abs[i] = math.Abs(e)
		mean += abs[i]
		bias += e
	}
	n := float64(len(errs))
	return Quantile(abs, 0.5), mean / n, bias / n
}

// Quantile returns the q-quantile of values, interpolated linearly; 0 for no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	at := q * float64(len(v)-1)
	low := int(at)
	high := min(low+1, len(v)-1)
	return v[low] + (at-float64(low))*(v[high]-v[low])
}

// ordersOf returns how well plans of one question are ordered: the mean rank correlation of groups of three or more
// rows, the fraction of distinct pairs in the right order, and the mean regret.
func ordersOf(groups map[group][]*Priced) (spearman, order, regret float64) {
	ranked, pairs, right, many := 0, 0, 0, 0
	for _, key := range sortedGroups(groups) {
		rows := groups[key]
		if len(rows) < 2 {
			continue
		}
		many++
		regret += regretOf(rows)
		n, ok := pairsOf(rows)
		pairs, right = pairs+n, right+ok
		if len(rows) > 2 {
			ranked++
			spearman += spearmanOf(rows)
		}
	}
	return ratio(spearman, ranked), ratio(float64(right), pairs), ratio(regret, many)
}

func ratio(a float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return a / float64(n)
}

func sortedGroups(groups map[group][]*Priced) []group {
	var keys []group
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.model, b.model), cmp.Compare(a.gpu, b.gpu),
			cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.batch, b.batch))
	})
	return keys
}

// pairsOf counts pairs whose measured times differ enough, and those that are predicted in the right order.
func pairsOf(rows []*Priced) (pairs, right int) {
	for i, a := range rows {
		for _, b := range rows[:i] {
			if math.Abs(*a.Measured-*b.Measured) <= distinct*min(*a.Measured, *b.Measured) || a.samePlan(b) {
				continue
			}
			pairs++
			if (*a.Measured < *b.Measured) == (a.Predicted < b.Predicted) && a.Predicted != b.Predicted {
				right++
			}
		}
	}
	return pairs, right
}

// PairsApart counts the pairs of plans of one question whose predictions differ by more than the fraction over and at
// most the fraction limit, and those that were measured in the predicted order. The difference of the measured times
// does not matter.
func PairsApart(rows []*Priced, over, limit float64) (pairs, right int) {
	groups := map[group][]*Priced{}
	for _, p := range rows {
		for _, o := range groups[p.group] {
			apart := math.Abs(p.Predicted-o.Predicted) / min(p.Predicted, o.Predicted)
			if p.samePlan(o) || apart > limit || apart <= over && over > 0 {
				continue
			}
			pairs++
			if (*p.Measured < *o.Measured) == (p.Predicted < o.Predicted) && p.Predicted != o.Predicted {
				right++
			}
		}
		groups[p.group] = append(groups[p.group], p)
	}
	return pairs, right
}

// samePlan reports whether two rows are runs of the same plan, whose questions are equal, so that predictions cannot
// distinguish them. They are not counted as a pair.
func (p *Priced) samePlan(o *Priced) bool {
	if p.Asked == nil || o.Asked == nil {
		return false
	}
	a, b := p.Asked.Problem, o.Asked.Problem
	return p.Plan == o.Plan && p.Predicted == o.Predicted && a.GEMM == b.GEMM && a.Engine == b.Engine &&
		a.Precision == b.Precision
}

// regretOf returns how much longer the plan predicted to be fastest takes than the best measured plan, a fraction. Of
// equal predictions the first counts.
func regretOf(rows []*Priced) float64 {
	chosen, best := rows[0], rows[0]
	for _, p := range rows {
		if p.Predicted < chosen.Predicted {
			chosen = p
		}
		if *p.Measured < *best.Measured {
			best = p
		}
	}
	for _, p := range rows { // of several runs of it the best, as for all plans
		if p.samePlan(chosen) && *p.Measured < *chosen.Measured {
			chosen = p
		}
	}
	return *chosen.Measured / *best.Measured - 1
}

// spearmanOf returns the rank correlation. Equal values share the mean of their ranks.
func spearmanOf(rows []*Priced) float64 {
	a := ranks(rows, func(p *Priced) float64 { return p.Predicted })
	b := ranks(rows, func(p *Priced) float64 { return *p.Measured })
	mean := float64(len(rows)-1) / 2
	top, va, vb := 0.0, 0.0, 0.0
	for i := range a {
		x, y := a[i]-mean, b[i]-mean
		top, va, vb = top+x*y, va+x*x, vb+y*y
	}
	if va == 0 || vb == 0 {
		return 0
	}
	return top / math.Sqrt(va*vb)
}

func ranks(rows []*Priced, value func(*Priced) float64) []float64 {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(value(rows[i]), value(rows[j])) })
	out := make([]float64, len(rows))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && value(rows[order[j]]) == value(rows[order[i]]) {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

// fitOf returns the mean of the rates at which rows that fitted, and rows that did not, are predicted correctly. If
// there is only one kind, it is that kind's rate.
func fitOf(rows []Priced) FitSummary {
	var n, right [2]int
	for i := range rows {
		if m := rows[i].MeasuredFits; m != nil {
			k := 0
			if *m {
				k = 1
			}
			n[k]++
			if rows[i].Fits == *m {
				right[k]++
			}
		}
	}
	kinds, sum := 0, 0.0
	for k := range n {
		if n[k] > 0 {
			kinds++
			sum += float64(right[k]) / float64(n[k])
		}
	}
	return FitSummary{N: n[0] + n[1], BalancedAccuracy: ratio(sum, kinds)}
}
