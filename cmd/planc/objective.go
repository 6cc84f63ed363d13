package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/runtime/amount"
)

// goalDoc says what the objective wanted and what was found, where it is not the fastest step of the whole cluster.
type goalDoc struct {
	Kind       string   `json:"kind"`
	TokensPerS float64  `json:"tokens_per_s"` // to be reached; 0 if any will do
	Devices    int      `json:"devices"`      // that do
	Of         int      `json:"of"`           // that the cluster may have
	Less       int      `json:"less"`         // the smaller number that comes nearest to it; 0 if none fits
	LessPerS   float64  `json:"less_tokens_per_s"`
	PerDay     *float64 `json:"cost_per_day"`
	PerToken   *float64 `json:"joules_per_token"` // of the devices at full load, where the objective is energy
	money
	NearBatch *nearSizeDoc `json:"near_batch,omitempty"` // null where the batch as it is serves

	open bool // the job does not say how many nodes there may be
}

// needs are the figures of a cluster that objectives add up.
var needs = map[string]struct {
	field, of string
	get       func(c *costmodel.Cluster) float64
}{
	spec.Cost:   {"node.price_per_hour", "cost", func(c *costmodel.Cluster) float64 { return c.Node.PricePerHour }},
	spec.Energy: {"gpu.watts", "energy", func(c *costmodel.Cluster) float64 { return c.GPU.Watts }},
}

// aim makes the job's cluster the one that its objective chooses: devices, the fewest that reach the goal; cost and
// energy, those on which training takes least of it.
func (a *app) aim(j *loaded) (*goalDoc, error) {
	if j.Objective.Kind == spec.Throughput {
		return nil, nil
	}
	if n, ok := needs[j.Objective.Kind]; ok && n.get(j.cluster) == 0 {
		return nil, ir.Diags{{Pos: j.Pos("objective.kind"), Code: costmodel.Missing,
			Msg: fmt.Sprintf("objective %s needs %s, which %s does not have; planc clusters %s > FILE is a file to "+
				"add it to", n.of, n.field, j.cluster.Name, j.cluster.Name)}}
	}
	s := &aiming{job: j, base: *j.problem(), doc: &goalDoc{Kind: j.Objective.Kind, TokensPerS: j.Goal(),
		Of: j.cluster.Devices()}}
	if s.open() {
		s.doc.open = true
		if err := a.runSearches(s.bound); err != nil {
			return nil, err
		}
	}
	if err := a.runSearches(s.all); err != nil {
		return nil, err
	}
	if err := a.runSearches(s.nearBatches); err != nil {
		return nil, err
	}
	return s.doc, s.take()
}

// aiming is a search over numbers of devices. It is exact: at each number the fastest plan is the one that costs and
// draws least, and numbers are passed over only where no plan can do, by the search's own bounds.
type aiming struct {
	job     *loaded
	base    search.Problem
	series  search.Series
	doc     *goalDoc
	chosen  *costmodel.Cluster
	cost    float64 // of a step on chosen: of nodes or devices, times seconds
	fastest float64 // tokens a second of any size, where none reaches the goal
	fits    int     // devices of that
}

// all tries every size, the smallest first, until the objective is sure.
func (s *aiming) all() error {
	sizes := s.sizes()
	for i, n := range sizes {
		found, err := s.size(n, s.limit)
		if err != nil {
			return err
		}
		if found != nil && s.doc.Kind == spec.Devices {
			return s.less(sizes[:i])
		}
	}
	if s.chosen != nil {
		return nil
	}
	for _, n := range slices.Backward(sizes) { // what it would be at best
		if _, err := s.size(n, func(c *costmodel.Cluster) float64 { return s.stepTokens() / s.fastest }); err != nil {
			return err
		}
	}
	return nil
}

// less finds which of the smaller sizes than the one that is taken comes nearest to the goal.
func (s *aiming) less(sizes []int) error {
	d := s.doc
	for _, n := range slices.Backward(sizes) {
		_, p, err := s.look(n, func(*costmodel.Cluster) float64 { return s.stepTokens() / d.LessPerS })
		if err != nil {
			return err
		}
		if p != nil && p.TokensPerS > d.LessPerS {
			d.Less, d.LessPerS = n, p.TokensPerS
		}
	}
	return nil
}

// stepTokens are those of a step.
func (s *aiming) stepTokens() float64 { return float64(s.base.GlobalBatch * s.job.Train.SeqLen) }

// limit is how long a step may take on a cluster at most: else it does not reach the goal, or costs more than the best.
func (s *aiming) limit(c *costmodel.Cluster) float64 {
	limit := math.Inf(1)
	if s.doc.TokensPerS > 0 {
		limit = s.stepTokens() / s.doc.TokensPerS
	}
	if s.chosen != nil {
		limit = min(limit, s.cost/s.units(c))
	}
	return limit
}

// units are what a cluster costs or draws in a second: of nodes, or devices, since all are alike.
func (s *aiming) units(c *costmodel.Cluster) float64 {
	if s.doc.Kind == spec.Cost {
		return float64(c.Nodes)
	}
	return float64(c.Devices())
}

// size looks for a plan on so many devices, with a step within a limit, and weighs it.
func (s *aiming) size(n int, limit func(*costmodel.Cluster) float64) (*costmodel.Predict, error) {
	p, found, err := s.look(n, limit)
	if found != nil {
		s.weigh(p.Cluster, *found)
	}
	return found, err
}

// inspectMachine looks for a plan on so many devices, with a step within a limit; nil where there is none.
func (s *aiming) look(n int, limit func(*costmodel.Cluster) float64) (search.Problem, *costmodel.Predict, error) {
	p := s.base
	if err := s.job.onDevices(&p, n); err != nil {
		return p, nil, nil // no such cluster
	}
	found, err := s.within(&p, limit(p.Cluster))
	return p, found, err
}

// within is the fastest plan of a question with a step within a limit; nil where there is none.
func (s *aiming) within(p *search.Problem, limit float64) (*costmodel.Predict, error) {
	best, found, err := s.series.Within(p, costmodel.Seconds(limit))
	var illegal *search.IllegalError
	switch {
	case errors.As(err, &illegal):
		return nil, nil
	case tooMany(err):
		return nil, tooManyPlans(s.job, err)
	case err != nil:
		return nil, wrongCluster(s.job, err)
	case !found:
		return nil, nil
	}
	return &best.Predict, nil
}

// sizes are the numbers of devices that the cluster may have: some of one node, and whole nodes; where nodes are paid
// for, whole nodes.
func (s *aiming) sizes() (out []int) {
	per := s.job.fullNode()
	for n := 1; n <= s.doc.Of; n++ {
		if n%per == 0 || n < per && s.doc.Kind != spec.Cost {
			out = append(out, n)
		}
	}
	return out
}

// weigh holds a size against the goal and the best so far.
func (s *aiming) weigh(c *costmodel.Cluster, p costmodel.Predict) {
	if p.TokensPerS > s.fastest {
		s.fastest, s.fits = p.TokensPerS, c.Devices()
	}
	if p.TokensPerS < s.doc.TokensPerS {
		return
	}
	if cost := s.units(c) * float64(p.StepS); s.chosen == nil || s.doc.Kind != spec.Devices && cost < s.cost {
		s.chosen, s.cost = c, cost
	}
}

// take puts the job on what was found.
func (s *aiming) take() error {
	j := s.job
	if s.chosen == nil && s.fastest > 0 {
		return &noFitError{message: fmt.Sprintf("no number of %s up to %d reaches %s tokens/s with %s on %s: %d "+
			"reach %s; "+
			"--nodes says how many nodes there may be",
			devicesWord(j.cluster), s.doc.Of, amount.Short(s.doc.TokensPerS), j.Config.Name, j.cluster.Name, s.fits,
			amount.Short(s.fastest))}
	}
	if s.chosen == nil {
		return nil // the search on the whole cluster says what is short
	}
	j.cluster = s.chosen
	s.doc.Devices = s.chosen.Devices()
	if price := s.chosen.Node.PricePerHour; price > 0 {
		perDay := 24 * price * float64(s.chosen.Nodes)
		s.doc.PerDay, s.doc.Currency = &perDay, s.chosen.Node.Currency
	}
	if watts := s.chosen.GPU.Watts; s.doc.Kind == spec.Energy {
		joules := s.cost * watts / s.stepTokens()
		s.doc.PerToken = &joules
	}
	return nil
}

func devicesWord(c *costmodel.Cluster) string {
	if c.IsCPU() {
		return "devices"
	}
	return "GPUs"
}

// sentence is what was found, for people: reached tokens a second, on so many of such a device.
func (g *goalDoc) sentence(reached float64, device string) string {
	s := fmt.Sprintf("%s: %d of %d", g.Kind, g.Devices, g.Of)
	var beside []string
	if g.open {
		s = fmt.Sprintf("%s: %d", g.Kind, g.Devices)
		beside = append(beside, fmt.Sprintf("--nodes sets no limit: up to %s %s were looked at", grouped(g.Of),
			plural(g.Of, device)))
	}
	switch {
	case g.TokensPerS > 0:
		s += fmt.Sprintf(" reach %s of the %s tokens/s wanted", amount.Short(reached), amount.Short(g.TokensPerS))
	default:
		s += " train at the least " + needs[g.Kind].of
	}
	if g.Less > 0 && g.Kind == spec.Devices {
		s += fmt.Sprintf(", of fewer %d come nearest with %s", g.Less, amount.Short(g.LessPerS))
	}
	if g.PerToken != nil {
		beside = append(beside, amount.Short(*g.PerToken)+" J a token")
	}
	if g.PerDay != nil {
		beside = append(beside, g.text(*g.PerDay)+" a day")
	}
	if g.NearBatch != nil {
		beside = append(beside, g.NearBatch.sentence())
	}
	return strings.Join(append([]string{s}, beside...), "; ")
}

// checkAimless refuses to compile for an objective that chooses the cluster: the job says on which one it trains.
func checkAimless(j *loaded) error {
	if j.Objective.Kind == spec.Throughput {
		return nil
	}
	return ir.Diags{{Pos: j.Pos("objective.kind"), Code: strict.NotYet,
		Msg: fmt.Sprintf("objective %s chooses how many devices there are, which planc plan does and compiling does "+
			"not; set cluster.nodes to what it says and objective to null", j.Objective.Kind)}}
}
