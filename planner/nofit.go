package planner

import (
	"fmt"
	"maps"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner/quantity"
)

// NoPlanError reports that no plan fits, that a pinned plan does not fit, or that no number of devices reaches the
// objective's goal.
type NoPlanError struct {
	Message string // one line: what does not fit where
	// Nearest is the plan that lacks the least memory; nil if the goal is what no plan reaches.
	Nearest *search.Priced
	Stage   int // of Nearest, the one that lacks memory
	// Changes are those of the job under which a plan fits, the cheapest first.
	Changes []search.Change
	Tried   string             // the changes that were tried, in words, if none of them makes a plan fit
	Cluster *costmodel.Cluster // on which nothing fits
}

// Error returns the error in one line.
func (e *NoPlanError) Error() string { return e.Message }

// NewNoPlanError returns the search's error as this question's: its changes set fields of the job.
func (q *Question) NewNoPlanError(e *search.NoPlan) *NoPlanError {
	what := "no plan fits"
	if e.Counts.Space == 1 {
		what = "the plan does not fit"
	}
	c := q.Hardware
	f := &NoPlanError{Message: fmt.Sprintf("%s: %s on %s (%d %s)", what, q.Config.Name, ClusterText(c), c.Devices(),
		c.GPU.Name), Nearest: &e.Nearest, Stage: e.NoFit.Stage, Cluster: c}
	for _, change := range e.Changes {
		change.Set = q.fieldsToSet(change.Set)
		f.Changes = append(f.Changes, change)
	}
	if len(f.Changes) == 0 {
		f.Tried = triedChanges(q)
	}
	return f
}

// ClusterText returns the cluster in words: 4 × dgx-h100.
func ClusterText(c *costmodel.Cluster) string { return fmt.Sprintf("%d × %s", c.Nodes, c.Name) }

// fieldsToSet returns the fields of this job that make a change of the search. Package search counts sequences and
// nodes; a job may give its batch in tokens, or its cluster in the short form 4xh100.
func (q *Question) fieldsToSet(set map[string]any) map[string]any {
	if n, key := shortFormCount(q, set); key != "" && q.Job.Cluster.Count > 0 {
		set = maps.Clone(set)
		delete(set, key)
		set["cluster"] = fmt.Sprintf("%dx%s", n, q.Job.Cluster.Node)
	}
	_, batch := set["train.global_batch"]
	_, seq := set["train.seq_len"]
	if !q.Has("train.global_batch_tokens") || !batch && !seq {
		return set
	}
	set = maps.Clone(set)
	set["train.global_batch_tokens"] = nil
	if !batch {
		set["train.global_batch"] = q.Train.GlobalBatch
	}
	return set
}

// shortFormCount returns N of the short form NxNAME under a change of the cluster's size, and the field that the
// change sets; "" if it sets none.
func shortFormCount(q *Question, set map[string]any) (n int, key string) {
	if n, ok := set["cluster.devices"].(int); ok {
		return n, "cluster.devices"
	}
	n, ok := set["cluster.nodes"].(int)
	if !ok {
		return 0, ""
	}
	if q.Job.Cluster.Count != q.Hardware.Nodes { // N counts devices
		n *= q.Hardware.Node.Devices
	}
	return n, "cluster.nodes"
}

// triedChanges returns, in words, the changes of the job that package search tries if nothing fits.
func triedChanges(q *Question) string {
	var words []string
	if pins := search.PinsOf(&q.Plan); len(pins) > 0 {
		words = append(words, "the job's pins given up")
	}
	if q.Objective.Headroom > search.LeastHeadroom {
		words = append(words, fmt.Sprintf("headroom %v", search.LeastHeadroom))
	}
	for _, t := range q.narrowerState() {
		words = append(words, precisionWords(t.Set))
	}
	c := q.Hardware
	if n := q.WholeNode(); n > c.Node.Devices {
		words = append(words, fmt.Sprintf("up to %d devices of a node", n))
	}
	if len(c.Network) > 0 {
		words = append(words, "more nodes, up to "+quantity.Count(search.MostNodes(c.Nodes)))
	} else {
		words = append(words, "the batch halved, the sequence halved")
	}
	return strings.Join(words, "; ")
}

// batchHints returns a hint for a batch that no plan divides: a number of devices that divides it; "" if there is
// none.
func batchHints(q *Question) string {
	c, batch := q.Hardware, q.Train.GlobalBatch
	for n := c.Node.Devices - 1; n > 0; n-- {
		if batch%(n*c.Nodes) == 0 {
			return fmt.Sprintf("; or use --devices %d of the %d of a node", n, c.Node.Devices)
		}
	}
	return ""
}
