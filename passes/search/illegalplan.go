package search

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/passes/search/space"
)

// reasons returns why the nearest plan is not legal: the rules that it breaks or, if it breaks none by itself, those
// that it breaks with the pinned values of the open keys.
func (e *enumeration) reasons() []Reason {
	rs := append(space.BrokenRules(&e.worst, e.set), e.brokenPins()...)
	if len(rs) > 0 {
		return rs
	}
	plan := e.worst
	for _, key := range space.OpenKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			if err := plan.SetKey(key, vs[0]); err != nil {
				rs = append(rs, Reason{Key: key, Message: err.Error()})
			}
		}
	}
	if e.p.Pins["zero"] == nil && plan.ZeroGroup > 1 && plan.Replicas() > 1 {
		plan.Zero = 1 // zero is free, so its value is not what is wrong with the group
	}
	if e.p.Pins["zero_group"] == nil && plan.Zero > 0 {
		plan.ZeroGroup = plan.Replicas()
	}
	if e.p.Pins["recompute_layers"] == nil && plan.Recompute != "none" {
		plan.RecomputeLayers = plan.LargestChunk()
	}
	rs = append(rs, space.BrokenRules(&plan, e.set)...)
	if len(rs) > 0 {
		return rs
	}
	return e.untried()
}

// untried returns a reason for each pinned open key if no rule is broken: no plan has its value together with the
// other pins. It never returns an empty list.
func (e *enumeration) untried() []Reason {
	var rs []Reason
	for _, key := range space.OpenKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			rs = append(rs, Reason{Key: key,
				Message: fmt.Sprintf("%s %s: no plan that is tried combines it with the other pins",
					key, strings.Join(vs, " or "))})
		}
	}
	if len(rs) == 0 {
		rs = []Reason{{Key: "dp", Message: "no plan is legal for this model, batch and cluster"}}
	}
	return rs
}

// brokenPins returns the pins that the nearest plan does not follow. micro_batches is only reported if the batch can
// be divided at all.
func (e *enumeration) brokenPins() []Reason {
	var rs []Reason
	for _, r := range e.p.BrokenPins(e.worst) {
		if r.Key != "micro_batches" {
			rs = append(rs, r)
			continue
		}
		for _, n := range e.p.Ints(r.Key, nil) {
			switch {
			case !e.set.DividesBatch(&e.worst):
			case e.p.Pins["micro_batch"] == nil && (n < 1 || e.set.Batch/e.worst.DP%n != 0):
				rs = append(rs, Reason{Key: r.Key, Message: e.set.NoMicroBatches(&e.worst, n)})
			default:
				rs = append(rs, Reason{Key: r.Key, Message: e.set.OtherMicroBatches(&e.worst, n)})
			}
		}
	}
	return rs
}
