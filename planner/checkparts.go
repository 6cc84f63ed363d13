package planner

import (
	"cmp"
	"errors"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// checkPart is those plans of a check that one question prices: all plans, or those that shard state and those that do
// not, if their precision differs, as under PyTorch's DDP and FSDP.
type checkPart struct {
	priced *search.Problem // has the model and the precision
	zeros  []string        // stages of ZeRO of the plans; nil: all
	series search.Series
}

// zerosLike returns the stages of ZeRO of plans that shard state, or of those that do not, as a plan does.
func zerosLike(plan *ir.Plan, isLike bool) []string {
	if (plan.Zero > 0) == isLike {
		return []string{"1", "2", "3"}
	}
	return []string{"0"}
}

// split divides the plans: those that shard state unlike the checked one are priced by another question.
func (k *checker) split(other *Question) {
	from := k.from()
	k.parts[0].zeros = zerosLike(&from, true)
	k.parts = append(k.parts, &checkPart{priced: newChecker(other).pinned, zeros: zerosLike(&from, false)})
}

// problem returns the part's problem under the conditions of another one; ok is false if these leave none of its plans.
func (s *checkPart) problem(conditions *search.Problem) (p search.Problem, ok bool) {
	p = *s.priced
	p.Pins, p.Expresses = conditions.Pins, conditions.Expresses
	if s.zeros == nil {
		return p, true
	}
	zeros := slices.DeleteFunc(slices.Clone(s.zeros), func(zero string) bool { return !p.Pins.Allows("zero", zero) })
	p.Pins = p.Pins.Merge(search.Pins{"zero": zeros})
	return p, len(zeros) > 0
}

// bestOf returns the fastest plan under a problem's conditions, with the number of plans that were searched for it. If
// none fits, the error has the one that exceeds memory least.
func (k *checker) bestOf(conditions *search.Problem) (best search.Priced, counts search.Counts, err error) {
	isFirst := true
	for _, part := range k.parts {
		p, ok := part.problem(conditions)
		if !ok {
			continue
		}
		one, n, oneErr := bestExpressed(&part.series, &p)
		counts = counts.Plus(n)
		if isFirst || compareAnswers(&one, oneErr, &best, err) < 0 {
			best, err, isFirst = one, oneErr, false
		}
	}
	return best, counts, err
}

// compareAnswers orders answers of searches: the fastest plan that fits first, then those that exceed memory, the least
// first, then other errors.
func compareAnswers(a *search.Priced, aErr error, b *search.Priced, bErr error) int {
	class := func(err error) int {
		var unfit *search.NoPlan
		switch {
		case err == nil:
			return 0
		case errors.As(err, &unfit):
			return 1
		}
		return 2
	}
	over := func(err error) int64 {
		var unfit *search.NoPlan
		errors.As(err, &unfit)
		return unfit.Nearest.Predict.MemoryBytes.Over()
	}
	if c := cmp.Compare(class(aErr), class(bErr)); c != 0 {
		return c
	}
	switch class(aErr) {
	case 0:
		return cmp.Compare(a.Predict.StepS, b.Predict.StepS)
	case 1:
		return cmp.Compare(over(aErr), over(bErr))
	}
	return 0
}
