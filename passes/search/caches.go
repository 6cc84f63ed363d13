package search

import (
	"maps"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

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
	memoryFits map[memoryFitKey]*memoryFit
}

// newCaches returns empty caches.
func newCaches() *caches {
	return &caches{profiles: map[profileKey]*profile{}, bases: map[profileKey]*baseProfile{},
		inFlight:       map[scheduleKey][]int{},
		pipelineSplits: map[pipelineSplitKey]*pipelineSplit{}, stateLayouts: map[stateLayoutKey]*stateLayout{},
		timetables: map[scheduleKey]*ir.Timetable{},
		works:      map[costmodel.Device]map[computeKey][][3]computeTime{}, memoryFits: map[memoryFitKey]*memoryFit{}}
}

// clone returns caches that start with the same contents and can change independently.
func (c *caches) clone() *caches {
	own := &caches{profiles: maps.Clone(c.profiles), bases: map[profileKey]*baseProfile{},
		inFlight:       maps.Clone(c.inFlight),
		pipelineSplits: maps.Clone(c.pipelineSplits),
		stateLayouts:   maps.Clone(c.stateLayouts), timetables: maps.Clone(c.timetables),
		memoryFits: copyFits(c.memoryFits),
		works:      map[costmodel.Device]map[computeKey][][3]computeTime{}}
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
