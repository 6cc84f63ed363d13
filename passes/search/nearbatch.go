package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
)

// minBatchGain is the fraction of tokens per second that a near batch must gain to be reported. minBatchAdvantage is
// the fraction by which a batch must gain more than a nearer one, which is what predictions can tell apart.
const minBatchGain, minBatchAdvantage = 0.05, 0.02

// NearBatches returns the batches near a problem's that its devices divide better, the nearest first. They are the
// multiples, on either side, of the number of devices, and of the devices divided by each divisor of a node's
// devices, as if that many devices held one replica. None is more than half of the batch away. There are none if the
// devices divide the batch.
func NearBatches(p *Problem) (out []int) {
	batch := p.GlobalBatch
	for _, m := range space.Divisors(p.Cluster.Node.Devices) {
		n := p.Cluster.Devices() / m
		if batch%n == 0 {
			continue
		}
		below := batch - batch%n
		for _, near := range []int{below, below + n} {
			if away := 2 * max(near-batch, batch-near); near > 0 && away <= batch {
				out = append(out, near)
			}
		}
	}
	distance := func(n int) int { return max(n-batch, batch-n) }
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b)) })
	return slices.Compact(out)
}

// NearBatch returns the near batch that trains on the most tokens per second, with the plan to recommend for it. A
// nearer batch is preferred to one that gains less than minBatchAdvantage more. ok is false if that plan does not
// gain minBatchGain over base, the plan to recommend for the problem itself.
func (r *Series) NearBatch(p *Problem, base Priced) (best Lever, ok bool) {
	found, least := *p, minBatchGain
	for _, n := range NearBatches(p) {
		q := *p
		q.GlobalBatch = n
		limit := float64(base.Predict.StepS) * float64(n) / float64(p.GlobalBatch) / (1 + least)
		fastest, fits, err := r.Within(&q, costmodel.Seconds(limit*(1+rounding)))
		if err != nil || !fits { // no plan is legal, fits, or is so fast
			continue
		}
		if gain := fastest.Predict.TokensPerS/base.Predict.TokensPerS - 1; gain >= least {
			found, least, ok = q, gain+minBatchAdvantage, true
		}
	}
	if !ok {
		return best, false
	}
	plan, _, err := r.Best(&found)
	gain := costmodel.SixDigits(plan.Predict.TokensPerS/base.Predict.TokensPerS - 1)
	return Lever{"near_batch", map[string]any{"train.global_batch": found.GlobalBatch}, gain, &plan},
		err == nil && gain >= minBatchGain
}
