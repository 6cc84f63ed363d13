package main

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// nearSizeDoc is a number of devices that does not divide the job's batch, and serves the objective better than the one
// that is taken if the batch is a near one.
type nearSizeDoc struct {
	Devices    int            `json:"devices"`
	Set        map[string]any `json:"set"` // the batch
	TokensPerS float64        `json:"tokens_per_s"`
	// the fraction of the cost or the energy of a token that it saves; 0 of devices
	Saves float64 `json:"saves"`

	batch int // the job's own
}

// leastSaved is which fraction of the cost or the energy of a token a near batch must save to be named, and moreSaved
// which fraction of what another needs it must save beyond that one.
const leastSaved, moreSaved = 0.05, 0.02

// nearBatches looks whether the batch is why no better number of devices was found: of devices, the fewest that reach
// the goal with a near batch; of cost and energy, those that need least for a token with a multiple of their number.
func (s *aiming) nearBatches() error {
	if s.chosen == nil || s.batchSetsTokens() {
		return nil
	}
	own := s.cost / s.stepTokens() // of a token
	limit := own * (1 - leastSaved)
	for _, n := range s.sizes() {
		if s.doc.Kind == spec.Devices && (n >= s.chosen.Devices() || s.doc.NearBatch != nil) {
			break
		}
		p := s.base
		if s.job.onDevices(&p, n) != nil {
			continue // no such cluster
		}
		for _, batch := range search.NearBatches(&p) {
			if s.doc.Kind != spec.Devices && batch%n != 0 {
				continue // all sizes are looked at, each for long
			}
			found, err := s.withBatch(p, batch, limit)
			if err != nil {
				return err
			}
			if found == nil {
				continue
			}
			s.doc.NearBatch = &nearSizeDoc{Devices: n, Set: s.job.asSet(map[string]any{"train.global_batch": batch}),
				TokensPerS: found.TokensPerS, batch: s.base.GlobalBatch}
			if s.doc.Kind == spec.Devices {
				break // the nearest batch
			}
			unit := s.units(p.Cluster) / found.TokensPerS
			s.doc.NearBatch.Saves = costmodel.SixDigits(1 - unit/own)
			limit = unit * (1 - moreSaved)
		}
	}
	return nil
}

// batchSetsTokens tells whether the goal is days and the number of tokens follows from the batch, so that another batch
// is another goal.
func (s *aiming) batchSetsTokens() bool {
	t := s.job.Train
	return s.job.Objective.Days > 0 && s.job.TrainTokens(t.GlobalBatch, t.SeqLen) != s.job.TrainTokens(2*t.GlobalBatch,
		t.SeqLen)
}

// withBatch is the fastest plan of a question with another batch that reaches the goal and, of cost and energy, needs
// no more than limit for a token; nil if there is none.
func (s *aiming) withBatch(p search.Problem, batch int, limit float64) (*costmodel.Predict, error) {
	p.GlobalBatch = batch
	tokens := float64(batch * s.job.Train.SeqLen)
	most := limit * tokens / s.units(p.Cluster)
	if s.doc.Kind == spec.Devices {
		most = tokens / s.doc.TokensPerS
	} else if s.doc.TokensPerS > 0 {
		most = min(most, tokens/s.doc.TokensPerS)
	}
	return s.within(&p, most)
}

// sentence is what the size does with the batch.
func (d *nearSizeDoc) sentence() string {
	text := fmt.Sprintf("%s reach it with", grouped(d.Devices))
	if d.Saves > 0 {
		text = fmt.Sprintf("%s need %s less with", grouped(d.Devices), percent(d.Saves))
	}
	return fmt.Sprintf("%s %s, as they do not divide the batch of %s", text, search.Change{Set: d.Set}.Args(),
		grouped(d.batch))
}
