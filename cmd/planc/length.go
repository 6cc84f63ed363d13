package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/runtime/amount"
)

// trainingDoc is how long the whole training takes.
type trainingDoc struct {
	Tokens float64  `json:"tokens"`
	Days   float64  `json:"days"`
	Cost   *float64 `json:"cost"` // null if the cluster has no price
	money
}

// money is what prices are in.
type money struct {
	Currency string `json:"currency"` // "" where the cluster does not say
}

// text is a sum of it.
func (m money) text(v float64) string { return strings.TrimSuffix(amount.Short(v)+" "+m.Currency, " ") }

const secondsOfDay = 24 * 60 * 60

// training is how long training on so many tokens takes, nil if they are not known.
func training(c *costmodel.Cluster, p costmodel.Predict, tokens float64) *trainingDoc {
	if tokens == 0 || p.TokensPerS == 0 {
		return nil
	}
	t := &trainingDoc{Tokens: tokens, Days: tokens / p.TokensPerS / secondsOfDay}
	if c.Node.PricePerHour > 0 {
		cost := t.Days * 24 * float64(c.Nodes) * c.Node.PricePerHour
		t.Cost, t.Currency = &cost, c.Node.Currency
	}
	return t
}

// sentence is that for people.
func (t *trainingDoc) sentence() string {
	s := fmt.Sprintf("%s tokens in %s", amount.Short(t.Tokens), durationText(t.Days))
	switch {
	case t.Cost == nil:
	case math.Round(*t.Cost) == 0:
		s += ", at a cost below " + t.text(1)
	default:
		s += ", at a cost of " + t.text(math.Round(*t.Cost))
	}
	return s
}

// durationText is a duration in the unit that people would take.
func durationText(days float64) string {
	switch s := days * secondsOfDay; {
	case days >= 2:
		return daysText(days) + " days"
	case s >= 2*60*60:
		return amount.Digits(s/(60*60), 3) + " h"
	case s >= 2*60:
		return amount.Digits(s/60, 3) + " min"
	default:
		return seconds(s)
	}
}

// daysText is a number of days to three digits.
func daysText(v float64) string {
	if v >= 1000 {
		return grouped(int64(math.Round(v)))
	}
	return amount.Digits(v, 3)
}
