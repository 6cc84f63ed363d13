package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/runtime/amount"
)

// nearBatch is the near batch with which a row's devices train on notably more tokens a second, where they do not
// divide the job's; nil if there is none, or if batches are what is swept.
func (q *sweeping) nearBatch(p *search.Problem, best search.Priced) *fasterDoc {
	if q.key == "global_batch" {
		return nil
	}
	l, ok := q.series.NearBatch(p, best)
	if !ok {
		return nil
	}
	set := q.job.FieldsToSet(l.Set)
	return &fasterDoc{Set: set, Speedup: l.Speedup, Plan: l.Best.Plan.JSON(), Predict: l.Best.Predict,
		text: fmt.Sprintf("do not divide the batch of %s: with %s each trains on %s tokens/s, %s",
			grouped(p.GlobalBatch),
			search.Change{Set: set}.Args(), amount.Short(l.Best.Predict.TokensPerSGPU), signed(l.Speedup))}
}

// batchNote says for which rows the batch is why they are slow: a line a row; "" if for none.
func (d *sweepDoc) batchNote() string {
	var b strings.Builder
	for i := range d.Rows {
		if r := &d.Rows[i]; r.NearBatch != nil {
			b.WriteString(prose("", 0, fmt.Sprintf("%s %s %s.", grouped(r.Cluster.Devices), d.devices(),
				r.NearBatch.text)))
		}
	}
	return b.String()
}
