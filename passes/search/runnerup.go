package search

import (
	"errors"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// runnerUp completes a choice with the best plan that differs only in it, and the best plan with another value and
// everything else free.
func (s *searcher) runnerUp(c *Choice, of *choice, values []string, others []Alternative, best Priced) {
	if len(others) == 0 {
		c.Verdict, c.Broken = Illegal, s.whyNone(c.Name, best.Plan)
		return
	}
	free := slices.MinFunc(others, compareAlternatives)
	c.Free = &free
	c.Kept, c.Broken = s.onlyIn(of.name, values, best)
	a := c.Free
	if c.Kept != nil {
		a = c.Kept
	}
	c.RunnerUp = of.value(&a.Plan)
	c.Verdict, c.SlowerBy = Slower, a.SlowerBy
	if a.Riskier(best) {
		c.Verdict = Riskier
	}
	if a.NoFit != nil {
		c.Verdict, c.OverBytes, c.Part = DoesNot, a.NoFit.OverBytes, a.NoFit.Part
	}
	if f := c.Free; f.NoFit == nil && f.SlowerBy < 0 && s.problem.Pins[c.Name] != nil {
		c.RunnerUp, c.Verdict, c.SlowerBy, c.Pinned = of.value(&f.Plan), Illegal, f.SlowerBy, true
	}
}

// solvedKeys are the keys that every plan has at their best values. A plan that differs only in one other key solves
// them again.
var solvedKeys = []string{"recompute_layers", "recompute_every", "stage_layers"}

// onlyIn returns the best plan with another value of a key and everything else kept, or the rules that forbid every
// value.
func (s *searcher) onlyIn(key string, others []string, best Priced) (*Alternative, []Reason) {
	q := *s.problem
	q.Pins = pinsKeepingSolved(best.Plan, Pins{key: others}, s.problem.Pins)
	only, err := s.space(&q)
	var illegal *IllegalError
	switch {
	case errors.As(err, &illegal):
		return nil, illegal.Reasons
	case err != nil:
		panic("search: a space with a plan has none with other pins: " + err.Error())
	}
	a := s.alternative(only, nil, best)
	return &a, nil
}

// pinsKeepingSolved is [Kept], with the solved keys as the job pins them.
func pinsKeepingSolved(plan ir.Plan, but, job Pins) Pins {
	pins := Kept(plan, but).Without(solvedKeys...)
	for _, key := range solvedKeys {
		if vs, pinned := job[key]; pinned && but[key] == nil {
			pins[key] = vs
		}
	}
	return pins
}
