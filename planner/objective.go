package planner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/runtime/amount"
)

// Goal is what an objective other than throughput asked for, and the number of devices that was found for it.
type Goal struct {
	Kind            string   `json:"kind"`              // devices, cost or energy
	TokensPerS      float64  `json:"tokens_per_s"`      // the rate to reach; 0 if any will do
	Devices         int      `json:"devices"`           // that were chosen
	Available       int      `json:"of"`                // devices that the cluster may have
	Fewer           int      `json:"less"`              // of the smaller sizes, the fastest; 0 if no plan fits on any
	FewerTokensPerS float64  `json:"less_tokens_per_s"` // of that size
	CostPerDay      *float64 `json:"cost_per_day"`      // in Currency; null if the cluster has no price
	// at full load of the devices; null unless the objective is energy
	JoulesPerToken   *float64  `json:"joules_per_token"`
	Currency         string    `json:"currency"` // "" if the cluster does not say it
	NearBatch        *NearSize `json:"near_batch,omitempty"`
	HasOpenNodeCount bool      `json:"-"` // the job does not say how many nodes there may be
}

// objectiveUnits are the figures of a cluster that the objectives cost and energy minimize.
var objectiveUnits = map[string]struct {
	field, name string
	get         func(c *costmodel.Cluster) float64
}{
	spec.Cost:   {"node.price_per_hour", "cost", func(c *costmodel.Cluster) float64 { return c.Node.PricePerHour }},
	spec.Energy: {"gpu.watts", "energy", func(c *costmodel.Cluster) float64 { return c.GPU.Watts }},
}

// chooseHardware returns the question on the number of devices that its objective chooses: for devices, the fewest
// that reach the goal; for cost and energy, those on which training takes the least of it.
func chooseHardware(q *Question) (*Question, *Goal, error) {
	if q.Objective.Kind == spec.Throughput {
		return q, nil, nil
	}
	if u, ok := objectiveUnits[q.Objective.Kind]; ok && u.get(q.Hardware) == 0 {
		return nil, nil, ir.Diags{{Pos: q.Pos("objective.kind"), Code: costmodel.Missing,
			Msg: fmt.Sprintf("objective %s needs %s, which %s does not have: write the cluster to a file with "+
				"planc clusters %s > FILE, and add it there", u.name, u.field, q.Hardware.Name, q.Hardware.Name)}}
	}
	s := &sizeSearch{question: q, base: *q.Problem(), goal: &Goal{Kind: q.Objective.Kind, TokensPerS: q.Goal(),
		Available: q.Hardware.Devices()}}
	steps := []func() error{s.tryAll, s.tryNearBatches}
	if s.hasOpenNodeCount() {
		s.goal.HasOpenNodeCount = true
		steps = append([]func() error{s.findMost}, steps...)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	chosen, err := s.result()
	return chosen, s.goal, err
}

// sizeSearch is a search over numbers of devices. It is exact: at each size the fastest plan is the one that costs
// least and uses least energy, and a size is skipped only if the search's own bounds exclude every plan on it.
type sizeSearch struct {
	question *Question
	base     search.Problem
	series   search.Series
	goal     *Goal
	chosen   *costmodel.Cluster
	cost     float64 // of a step on chosen: nodes or devices, times seconds
	fastest  float64 // tokens per second of the fastest size, which may not reach the goal
	largest  int     // devices of the fastest size
}

// tryAll tries every size, the smallest first, until it is certain which one the objective asks for.
func (s *sizeSearch) tryAll() error {
	sizes := s.sizes()
	for i, n := range sizes {
		found, err := s.trySize(n, s.limit)
		if err != nil {
			return err
		}
		if found != nil && s.goal.Kind == spec.Devices {
			return s.findFewer(sizes[:i])
		}
	}
	if s.chosen != nil {
		return nil
	}
	for _, n := range slices.Backward(sizes) { // none reaches the goal: find the fastest, for the message
		_, err := s.trySize(n, func(*costmodel.Cluster) float64 { return s.stepTokens() / s.fastest })
		if err != nil {
			return err
		}
	}
	return nil
}

// findFewer finds the fastest of the sizes that are smaller than the chosen one.
func (s *sizeSearch) findFewer(sizes []int) error {
	g := s.goal
	for _, n := range slices.Backward(sizes) {
		_, p, err := s.fastestOn(n, func(*costmodel.Cluster) float64 { return s.stepTokens() / g.FewerTokensPerS })
		if err != nil {
			return err
		}
		if p != nil && p.TokensPerS > g.FewerTokensPerS {
			g.Fewer, g.FewerTokensPerS = n, p.TokensPerS
		}
	}
	return nil
}

// stepTokens returns the number of tokens of one step.
func (s *sizeSearch) stepTokens() float64 {
	return float64(s.base.GlobalBatch * s.question.Train.SeqLen)
}

// limit returns how many seconds a step may take on a cluster: longer, it misses the goal or costs more than the best.
func (s *sizeSearch) limit(c *costmodel.Cluster) float64 {
	limit := math.Inf(1)
	if s.goal.TokensPerS > 0 {
		limit = s.stepTokens() / s.goal.TokensPerS
	}
	if s.chosen != nil {
		limit = min(limit, s.cost/s.units(c))
	}
	return limit
}

// units returns what a cluster costs or uses in a second, in nodes or devices, which are all alike.
func (s *sizeSearch) units(c *costmodel.Cluster) float64 {
	if s.goal.Kind == spec.Cost {
		return float64(c.Nodes)
	}
	return float64(c.Devices())
}

// trySize finds the fastest plan on a number of devices, and takes the size if it is the best so far.
func (s *sizeSearch) trySize(n int, limit func(*costmodel.Cluster) float64) (*costmodel.Predict, error) {
	p, found, err := s.fastestOn(n, limit)
	if found != nil {
		s.compare(p.Cluster, *found)
	}
	return found, err
}

// fastestOn returns the fastest plan on a number of devices if its step is within a limit; nil if there is none.
func (s *sizeSearch) fastestOn(n int, limit func(*costmodel.Cluster) float64) (search.Problem, *costmodel.Predict,
	error) {
	p := s.base
	c, err := s.question.clusterOf(n)
	if err != nil {
		return p, nil, nil // there is no such cluster
	}
	p.Cluster = c
	found, err := s.within(&p, limit(c))
	return p, found, err
}

// within returns the fastest plan of a problem if its step is within a limit; nil if there is none.
func (s *sizeSearch) within(p *search.Problem, limit float64) (*costmodel.Predict, error) {
	best, found, err := s.series.Within(p, costmodel.Seconds(limit))
	var illegal *search.IllegalError
	switch {
	case errors.As(err, &illegal):
		return nil, nil
	case isTooMany(err):
		return nil, s.question.SearchError(fmt.Errorf("on %d devices %w", p.Cluster.Devices(), err))
	case err != nil:
		return nil, s.question.SearchError(err)
	case !found:
		return nil, nil
	}
	return &best.Predict, nil
}

// sizes returns the numbers of devices that the cluster may have: a part of one node, or whole nodes. For cost they
// are whole nodes, because a part of a node costs as much as all of it.
func (s *sizeSearch) sizes() (out []int) {
	per := s.question.FullNode()
	for n := 1; n <= s.goal.Available; n++ {
		if n%per == 0 || n < per && s.goal.Kind != spec.Cost {
			out = append(out, n)
		}
	}
	return out
}

// compare takes a size if it reaches the goal and is better than the best so far.
func (s *sizeSearch) compare(c *costmodel.Cluster, p costmodel.Predict) {
	if p.TokensPerS > s.fastest {
		s.fastest, s.largest = p.TokensPerS, c.Devices()
	}
	if p.TokensPerS < s.goal.TokensPerS {
		return
	}
	if cost := s.units(c) * float64(p.StepS); s.chosen == nil || s.goal.Kind != spec.Devices && cost < s.cost {
		s.chosen, s.cost = c, cost
	}
}

// result returns the question on the chosen hardware, and completes the goal.
func (s *sizeSearch) result() (*Question, error) {
	q := s.question
	if s.chosen == nil && s.fastest > 0 {
		return nil, &NoPlanError{Message: fmt.Sprintf("no number of %s up to %d reaches %s tokens/s with %s on %s: "+
			"%d reach %s; --nodes says how many nodes there may be",
			devicesWord(q.Hardware), s.goal.Available, amount.Short(s.goal.TokensPerS), q.Config.Name, q.Hardware.Name,
			s.largest, amount.Short(s.fastest))}
	}
	if s.chosen == nil {
		return q, nil // nothing fits; the search on the whole cluster says why
	}
	s.goal.Devices = s.chosen.Devices()
	if price := s.chosen.Node.PricePerHour; price > 0 {
		perDay := 24 * price * float64(s.chosen.Nodes)
		s.goal.CostPerDay, s.goal.Currency = &perDay, s.chosen.Node.Currency
	}
	if watts := s.chosen.GPU.Watts; s.goal.Kind == spec.Energy {
		joules := s.cost * watts / s.stepTokens()
		s.goal.JoulesPerToken = &joules
	}
	return q.onHardware(s.chosen), nil
}

// devicesWord returns the word for a cluster's devices.
func devicesWord(c *costmodel.Cluster) string {
	if c.IsCPU() {
		return "devices"
	}
	return "GPUs"
}
