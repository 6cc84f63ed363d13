package planner

import (
	"errors"
	"strconv"

	"github.com/planc-dev/planc/passes/search"
)

// errNotExpressed says that no plan that fits can be expressed.
var errNotExpressed = errors.New("no plan that fits can be expressed")

// bestExpressed returns the plan to recommend of those that a problem's condition allows. A search tests recomputation
// with each value of zero, so that its plan may combine two choices that cannot be combined. If it does, the fastest
// plan of one search for each value is the best.
func bestExpressed(series *search.Series, p *search.Problem) (search.Priced, search.Counts, error) {
	best, counts, err := series.Best(p)
	if err != nil || p.Expresses == nil || p.Expresses(&best.Plan) {
		return best, counts, err
	}
	var found *search.Priced
	for zero := range 4 {
		value := strconv.Itoa(zero)
		if !p.Pins.Allows("zero", value) {
			continue
		}
		q := *p
		q.Pins = p.Pins.Merge(search.Pins{"zero": {value}})
		one, _, err := series.Best(&q)
		if err == nil && p.Expresses(&one.Plan) && (found == nil || one.Predict.StepS < found.Predict.StepS) {
			found = &one
		}
	}
	if found == nil {
		return best, counts, errNotExpressed
	}
	return *found, counts, nil
}

// isNone reports whether an error of a search says that there is no plan: none is legal, none fits, or none can be
// expressed.
func isNone(err error) bool {
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	return errors.As(err, &illegal) || errors.As(err, &unfit) || errors.Is(err, errNotExpressed)
}
