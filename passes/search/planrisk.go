package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Apart is the fraction of a step up to which two predictions cannot tell which plan is faster.
//
// Measured on pairs of published plans for one question (tools/validate/rows, all sources, 2026-11-24;
// docs/validation.md): how often the plan that is predicted to be faster was faster, where chance is 50 %.
//
//	difference    correct
//	0.5 to 2 %    56 % of 421 pairs
//	1.5 to 2 %    52 %
//	2 to 5 %      61 % of 727 pairs
//	5 to 10 %     71 %
//	above 20 %    98 %
const Apart = 0.02

// ampleFree is the fraction of the usable memory that a plan without memory pressure leaves free. Such a plan fits
// even if its predicted memory is too low by the median error on published runs, 7.8 % (docs/validation.md).
const ampleFree = 0.08

// Pressure returns how much memory a plan lacks to leave ampleFree, in hundredths of the usable memory, rounded up; 0
// if it leaves that much.
func Pressure(m costmodel.Memory) int { return pressure(m.Capacity-m.Total, m.Capacity) }

// pressure computes Pressure from the free and the usable bytes.
func pressure(free, usable int64) int {
	lacks := int64(ampleFree*float64(usable)) - free
	if lacks <= 0 {
		return 0
	}
	step := max(1, usable/100)
	return int((lacks + step - 1) / step)
}

// mechanisms is the number of figures that describe how simple a plan is.
const mechanisms = 10

// risk orders plans that predictions cannot rank: by memory pressure, then by simplicity. Of equal ones, the faster
// is taken, then the first in the space.
type risk struct {
	pressure int
	parts    [mechanisms]int
}

// compare orders by risk.
func (r *risk) compare(o *risk) int {
	return cmp.Or(cmp.Compare(r.pressure, o.pressure), slices.Compare(r.parts[:], o.parts[:]))
}

// simplicity returns the mechanisms that a user must understand, each as a number that grows with its complexity. Of
// two plans, the one with the smaller first differing number is simpler.
func simplicity(p *ir.Plan) [mechanisms]int {
	recompute := slices.Index([]string{"none", "selective", "full"}, p.Recompute)
	return [mechanisms]int{p.PP, p.VPP, bit(p.Splits()), p.CP, p.TP, p.ETP, recompute, p.Zero,
		bit(p.Zero > 0 && p.ZeroGroup < p.Replicas()), p.EP}
}

// bit returns 1 for true.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// riskOf returns the risk of a plan with its prediction.
func riskOf(p *Priced) risk {
	return risk{Pressure(p.Predict.MemoryBytes), simplicity(&p.Plan)}
}

// Riskier reports whether an alternative is faster than the chosen plan by less than predictions can tell, and has
// more risk.
func (a *Alternative) Riskier(than Priced) bool {
	if a.NoFit != nil || a.SlowerBy >= 0 || a.SlowerBy < -Apart {
		return false
	}
	x, y := riskOf(&Priced{Plan: a.Plan, Predict: a.Predict}), riskOf(&than)
	return x.compare(&y) > 0
}
