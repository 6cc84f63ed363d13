package price

import (
	"maps"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// Memo holds what pricers have found about one model and on one cluster. Pricers that use the same memo share these
// results, one after another. The zero value is empty and ready to use.
type Memo struct {
	model  *ir.Model
	recipe ir.Recipe
	cpu    bool          // the kind of device
	caches *caches       // what holds for the model with the recipe on any cluster of that kind
	costs  *clusterCosts // what holds on one cluster; nil if pricers of the memo do not share that
}

// Pricer returns a pricer of a problem that uses and extends the memo. Problems with the same model must have the same
// precision. If the memo is of another model, recipe or kind of device, it forgets that.
func (m *Memo) Pricer(p *space.Problem) (*Pricer, error) {
	s, err := New(p)
	if err != nil {
		return nil, err
	}
	if m.IsOf(p.Model) && m.recipe == p.Recipe && m.cpu == s.cpu {
		s.caches = m.caches
	}
	m.model, m.recipe, m.cpu, m.caches = p.Model, p.Recipe, s.cpu, s.caches
	if m.costs != nil && m.costs.validFor(s) {
		s.clusterCosts = m.costs
	}
	return s, nil
}

// IsOf reports whether the memo is of a model.
func (m *Memo) IsOf(model *ir.Model) bool { return m.caches != nil && m.model == model }

// Clone returns a memo that starts with the same contents and can change independently.
func (m *Memo) Clone() *Memo {
	own := *m
	if m.caches != nil {
		own.caches = m.caches.clone()
	}
	if m.costs != nil {
		own.costs = m.costs.clone()
	}
	return &own
}

// DropFitted drops everything that depends on an engine's constants, which a fit changes. Results of the passes stay.
func (m *Memo) DropFitted() {
	if m.caches != nil {
		m.caches.dropFitted()
	}
}

// Memo returns what the pricer has found. The pricer continues to extend it.
func (s *Pricer) Memo() *Memo {
	return &Memo{model: s.problem.Model, recipe: s.problem.Recipe, cpu: s.cpu, caches: s.caches, costs: s.clusterCosts}
}

// Merge adds what a fork has found about the model.
func (s *Pricer) Merge(fork *Pricer) { s.caches.merge(fork.caches) }

// Fork returns a pricer that knows what this one knows, for use on another core. They share nothing that either changes
// except the layer profiles that other cores compile.
func (s *Pricer) Fork() *Pricer {
	t := *s
	t.caches, t.clusterCosts = s.caches.clone(), s.clusterCosts.clone()
	t.precompiler = basePrecompiler{jobs: s.precompiler.jobs}
	t.Options = s.Options.Clone()
	t.zeroTimeCache, t.pipelineEnds = maps.Clone(s.zeroTimeCache), maps.Clone(s.pipelineEnds)
	t.postPassCache = map[postPassKey][]postPassBound{}
	t.bucketPrices = map[bucketKey]*bucketPrice{}
	t.communicatorCache = maps.Clone(s.communicatorCache)
	t.activationScratch, t.costScratch, t.stageScratch, t.countScratch = activationMemory{}, nil, nil, nil
	t.stateScratch, t.boundScratch, t.triedScratch, t.lastUpdates = nil, nil, nil, pricedUpdates{}
	return &t
}

// caches hold what searches for one model, precision and kind of device share.
type caches struct {
	profiles       map[profileKey]*profile
	bases          map[profileKey]*baseProfile
	inFlight       map[scheduleKey][]int
	stale          map[profileKey]bool // profiles whose engine constants have changed
	pipelineSplits map[pipelineSplitKey]*pipelineSplit
	stateLayouts   map[stateLayoutKey]*stateLayout

	timetables map[scheduleKey]*ir.Timetable
	works      map[costmodel.Device]map[computeKey][][3]computeTime
}

// newCaches returns empty caches.
func newCaches() *caches {
	return &caches{profiles: map[profileKey]*profile{}, bases: map[profileKey]*baseProfile{},
		inFlight:       map[scheduleKey][]int{},
		pipelineSplits: map[pipelineSplitKey]*pipelineSplit{}, stateLayouts: map[stateLayoutKey]*stateLayout{},
		timetables: map[scheduleKey]*ir.Timetable{},
		works:      map[costmodel.Device]map[computeKey][][3]computeTime{}}
}

// clone returns caches that start with the same contents and can change independently.
func (c *caches) clone() *caches {
	own := &caches{profiles: maps.Clone(c.profiles), bases: map[profileKey]*baseProfile{},
		inFlight:       maps.Clone(c.inFlight),
		pipelineSplits: maps.Clone(c.pipelineSplits),
		stateLayouts:   maps.Clone(c.stateLayouts), timetables: maps.Clone(c.timetables),
		works: map[costmodel.Device]map[computeKey][][3]computeTime{}}
	for d, w := range c.works {
		own.works[d] = maps.Clone(w)
	}
	for k, b := range c.bases {
		own.bases[k] = b.clone()
	}
	return own
}

// clone returns a copy whose derived results can change independently.
func (b *baseProfile) clone() *baseProfile {
	own := *b
	own.byMicro, own.workByDevice = maps.Clone(b.byMicro), maps.Clone(b.workByDevice)
	return &own
}

// merge adds what another worker has found about the model.
func (c *caches) merge(o *caches) {
	addTo(c.profiles, o.profiles)
	addTo(c.bases, o.bases)
	addTo(c.inFlight, o.inFlight)
	addTo(c.pipelineSplits, o.pipelineSplits)
	addTo(c.stateLayouts, o.stateLayouts)
	addTo(c.timetables, o.timetables)
	for d, w := range o.works {
		if c.works[d] == nil {
			c.works[d] = w
		}
		addTo(c.works[d], w)
	}
}

// addTo adds the entries that a map does not have.
func addTo[K comparable, V any](to, from map[K]V) {
	for k, v := range from {
		if _, known := to[k]; !known {
			to[k] = v
		}
	}
}

// dropFitted drops everything that depends on an engine's constants. Results of the passes stay.
func (c *caches) dropFitted() {
	clear(c.bases)
	clear(c.works)
	c.stale = map[profileKey]bool{}
	for k := range c.profiles {
		c.stale[k] = true
	}
}
