package planner

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// NearSize is a number of devices that serves the objective better than the chosen one, with a batch near the job's.
// It does not divide the job's own batch.
type NearSize struct {
	Devices    int            `json:"devices"`
	Set        map[string]any `json:"set"` // the fields that set the batch
	TokensPerS float64        `json:"tokens_per_s"`
	Saves      float64        `json:"saves"` // fraction of the cost or energy of a token; 0 for objective devices
	JobBatch   int            `json:"-"`     // sequences of the job's own batch
}

const (
	// leastSaved is the fraction of the cost or energy of a token that a near batch must save to be reported.
	leastSaved = 0.05
	// moreSaved is the fraction that another near batch must save beyond the one found so far.
	moreSaved = 0.02
)

// tryNearBatches finds out whether the job's batch is why no better number of devices was found. For devices it looks
// for the fewest that reach the goal with a near batch. For cost and energy it looks for those that need least for a
// token, with a batch that is a multiple of their number.
func (s *sizeSearch) tryNearBatches() error {
	if s.chosen == nil || s.batchSetsTokens() {
		return nil
	}
	own := s.cost / s.stepTokens() // per token
	limit := own * (1 - leastSaved)
	for _, n := range s.sizes() {
		if s.goal.Kind == spec.Devices && (n >= s.chosen.Devices() || s.goal.NearBatch != nil) {
			break
		}
		p := s.base
		c, err := s.question.clusterOf(n)
		if err != nil {
			continue // there is no such cluster
		}
		p.Cluster = c
		for _, batch := range search.NearBatches(&p) {
			if s.goal.Kind != spec.Devices && batch%n != 0 {
				continue // every size is searched, so that more batches would take too long
			}
			found, err := s.withBatch(p, batch, limit)
			if err != nil {
				return err
			}
			if found == nil {
				continue
			}
			s.goal.NearBatch = &NearSize{Devices: n,
				Set:        s.question.fieldsToSet(map[string]any{"train.global_batch": batch}),
				TokensPerS: found.TokensPerS, JobBatch: s.base.GlobalBatch}
			if s.goal.Kind == spec.Devices {
				break // this is the nearest batch
			}
			unit := s.units(p.Cluster) / found.TokensPerS
			s.goal.NearBatch.Saves = costmodel.SixDigits(1 - unit/own)
			limit = unit * (1 - moreSaved)
		}
	}
	return nil
}

// batchSetsTokens reports whether the goal is a number of days and the number of tokens follows from the batch, so
// that another batch would be another goal.
func (s *sizeSearch) batchSetsTokens() bool {
	q := s.question
	batch, seq := q.Train.GlobalBatch, q.Train.SeqLen
	return q.Objective.Days > 0 && q.TrainTokens(batch, seq) != q.TrainTokens(2*batch, seq)
}

// withBatch returns the fastest plan of a problem with another batch if it reaches the goal and, for cost and energy,
// needs no more than limit for a token; nil if there is none.
func (s *sizeSearch) withBatch(p search.Problem, batch int, limit float64) (*costmodel.Predict, error) {
	p.GlobalBatch = batch
	tokens := float64(batch * s.question.Train.SeqLen)
	longest := limit * tokens / s.units(p.Cluster)
	if s.goal.Kind == spec.Devices {
		longest = tokens / s.goal.TokensPerS
	} else if s.goal.TokensPerS > 0 {
		longest = min(longest, tokens/s.goal.TokensPerS)
	}
	return s.within(&p, longest)
}
