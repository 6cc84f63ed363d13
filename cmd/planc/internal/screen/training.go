package screen

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/planner/quantity"

	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime/amount"
)

// money is the unit of prices.
type money struct {
	Currency string `json:"currency"` // "" where the cluster does not say
}

// text returns an amount of money.
func (m money) text(v float64) string { return strings.TrimSuffix(amount.Short(v)+" "+m.Currency, " ") }

const secondsOfDay = 24 * 60 * 60

// trainingSentence says how long training takes and what it costs.
func trainingSentence(t *planner.Training) string {
	s := fmt.Sprintf("%s tokens in %s", amount.Short(t.Tokens), durationText(t.Days))
	switch {
	case t.Cost == nil:
	case math.Round(*t.Cost) == 0:
		s += ", at a cost below " + money{t.Currency}.text(1)
	default:
		s += ", at a cost of " + money{t.Currency}.text(math.Round(*t.Cost))
	}
	return s
}

// durationText returns a duration in days, hours, minutes or seconds.
func durationText(days float64) string {
	switch s := days * secondsOfDay; {
	case days >= 2:
		return daysText(days) + " days"
	case s >= 2*60*60:
		return amount.Digits(s/(60*60), 3) + " h"
	case s >= 2*60:
		return amount.Digits(s/60, 3) + " min"
	default:
		return quantity.Seconds(s)
	}
}

// daysText returns a number of days to three digits.
func daysText(v float64) string {
	if v >= 1000 {
		return quantity.Count(int64(math.Round(v)))
	}
	return amount.Digits(v, 3)
}
