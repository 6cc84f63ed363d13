package planner

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
)

// CheckChange is a change of the job under which a plan fits.
type CheckChange struct {
	Set      map[string]any    `json:"set"`
	Plan     Plan              `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	KeepsAll bool              `json:"keeps_plan"` // the plan keeps your keys, except those that follow from the number of devices
	Args     string            `json:"args"`       // as arguments of planc

	Cluster *costmodel.Cluster `json:"-"`
}

// followingKeys are the keys of a plan that follow from the number of devices and the batch.
var followingKeys = []string{"dp", "micro_batches", "zero_group", "stage_layers", "axis_order"}

// following returns the keys that follow from the number of devices and the batch. A file that gives micro_batches and
// no micro_batch keeps them: its micro_batch follows.
func (k *checker) following() []string {
	if k.pinned.Pins["micro_batch"] != nil {
		return followingKeys
	}
	return slices.DeleteFunc(slices.Clone(followingKeys), func(key string) bool { return key == "micro_batches" })
}

// changes returns the changes of the job under which the checked plan fits. If there are none, and no plan fits at all,
// it returns those under which any plan fits.
func (k *checker) changes(best *search.Priced) (out []CheckChange) {
	if k.yours == nil && best != nil {
		return nil
	}
	p := *k.pinned
	p.Pins = k.pinned.Pins.Without(k.following()...)
	found := search.ChangesThatFit(&p)
	keepsAll := true
	if len(found) == 0 && best == nil {
		found, keepsAll = search.ChangesThatFit(&k.free), false
	}
	for _, c := range found {
		c.Set = k.question.fieldsToSet(c.Set)
		out = append(out, CheckChange{Set: c.Set, Plan: Plan{c.Best.Plan}, Predict: c.Best.Predict, KeepsAll: keepsAll,
			Args: c.Args(), Cluster: c.Cluster})
	}
	return out
}
