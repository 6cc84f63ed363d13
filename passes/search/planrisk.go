package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Apart is the fraction of a step up to which two predictions do not tell which plan is faster. Of published plans of
// one question whose predictions differ by 0.5 to 2 %, the one that is predicted to be faster was faster in 56 % of 421
// pairs, and in 52 % of those that differ by 1.5 to 2 %, where chance is 50 %. From 2 to 5 % it was in 61 % of 727,
// from 5 to 10 % in 71 %, and beyond 20 % in 98 % (tools/validate/rows, all sources, 2026-11-24; docs/validation.md).
const Apart = 0.02

// ampleFree is the fraction of the usable memory that a plan without memory pressure leaves free: it fits even if its
// memory is predicted too low by the median error over published runs, 7.8 % (docs/validation.md).
const ampleFree = 0.08

// Pressure is how far a plan is from leaving ample memory free, in hundredths of the usable memory, rounded up; 0 if it
// does.
func Pressure(m costmodel.Memory) int { return pressure(m.Capacity-m.Total, m.Capacity) }

func pressure(free, usable int64) int {
	lacks := int64(ampleFree*float64(usable)) - free
	if lacks <= 0 {
		return 0
	}
	step := max(1, usable/100)
	return int((lacks + step - 1) / step)
}

// mechanisms is how many numbers say how simple a plan is.
const mechanisms = 10

// risk orders plans that predictions do not tell apart: by memory pressure, then by simplicity. Of equal ones the
// faster is taken, then the first in the order of the space.
type risk struct {
	pressure int
	parts    [mechanisms]int
}

func (r *risk) compare(o *risk) int {
	return cmp.Or(cmp.Compare(r.pressure, o.pressure), slices.Compare(r.parts[:], o.parts[:]))
}

// simplicity is what people have to understand of a plan, each as a number that is the larger the more there is of it.
// Of two plans the one with less of the first that differs is the simpler.
func simplicity(p *ir.Plan) [mechanisms]int {
	recompute := slices.Index([]string{"none", "selective", "full"}, p.Recompute)
	return [mechanisms]int{p.PP, p.VPP, bit(p.Splits()), p.CP, p.TP, p.ETP, recompute, p.Zero,
		bit(p.Zero > 0 && p.ZeroGroup < p.Replicas()), p.EP}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// riskOf is the risk of a plan with its prediction.
func riskOf(p *Priced) risk {
	return risk{Pressure(p.Predict.MemoryBytes), simplicity(&p.Plan)}
}

// Riskier reports whether an alternative is faster than the chosen plan by less than predictions can tell, and has more
// risk.
func (a *Alternative) Riskier(than Priced) bool {
	if a.NoFit != nil || a.SlowerBy >= 0 || a.SlowerBy < -Apart {
		return false
	}
	x, y := riskOf(&Priced{Plan: a.Plan, Predict: a.Predict}), riskOf(&than)
	return x.compare(&y) > 0
}
