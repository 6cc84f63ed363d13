package planner

import "github.com/planc-dev/planc/costmodel"

// Training is how long the whole training takes, and what it costs.
type Training struct {
	Tokens   float64  `json:"tokens"`
	Days     float64  `json:"days"`
	Cost     *float64 `json:"cost"`     // in Currency; null if the cluster has no price
	Currency string   `json:"currency"` // "" if the cluster does not say it
}

const secondsPerDay = 24 * 60 * 60

// trainingOf returns how long training on a number of tokens takes; nil if the number is not known.
func trainingOf(c *costmodel.Cluster, p costmodel.Predict, tokens float64) *Training {
	if tokens == 0 || p.TokensPerS == 0 {
		return nil
	}
	t := &Training{Tokens: tokens, Days: tokens / p.TokensPerS / secondsPerDay}
	if c.Node.PricePerHour > 0 {
		cost := t.Days * 24 * float64(c.Nodes) * c.Node.PricePerHour
		t.Cost, t.Currency = &cost, c.Node.Currency
	}
	return t
}
