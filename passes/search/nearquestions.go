package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search/space"
)

// minNearSpeedup is the factor in tokens per second by which a near question must be faster to be reported.
const minNearSpeedup = 1.2

// nearTrials returns questions near a problem whose answers may be far faster: half the nodes, and one node. If the
// number of devices does not divide the batch, they include the nearest batches that it divides, at most half the
// batch away.
func nearTrials(p *Problem) (out []Trial) {
	nodes := p.Cluster.Nodes
	for _, n := range []int{nodes / 2, 1} {
		if n < 1 || n >= nodes || len(out) > 0 && n == out[0].Problem.Cluster.Nodes {
			continue
		}
		t := Trial{Name: "nodes", Set: map[string]any{"cluster.nodes": n}, Problem: *p}
		t.Problem.Cluster = cloneCluster(p.Cluster)
		t.Problem.Cluster.Nodes = n
		out = append(out, t)
	}
	below := p.GlobalBatch - p.GlobalBatch%p.Cluster.Devices()
	if below == p.GlobalBatch {
		return out
	}
	for _, n := range []int{below, below + p.Cluster.Devices()} {
		if away := 2 * max(n-p.GlobalBatch, p.GlobalBatch-n); away <= p.GlobalBatch {
			t := Trial{Name: "near_batch", Set: map[string]any{"train.global_batch": n}, Problem: *p}
			t.Problem.GlobalBatch = n
			out = append(out, t)
		}
	}
	return out
}

// nearLever answers a near question, if that is notably faster than the best plan of the problem. Bounds soon show if
// it cannot be. maxFamilies is as in [Series.within].
func (r *Series) nearLever(t *Trial, base Priced, batch, maxFamilies int) (Lever, bool) {
	limit := base.Predict.StepS * costmodel.Seconds(float64(t.Problem.GlobalBatch)/float64(batch)/minNearSpeedup)
	best, ok, err := r.within(&t.Problem, limit*(1+rounding), maxFamilies)
	if err != nil || !ok {
		return Lever{}, false // no plan is legal, fits, or is so fast
	}
	gain := costmodel.SixDigits(best.Predict.TokensPerS/base.Predict.TokensPerS - 1)
	return Lever{t.Name, t.Set, gain, &best}, gain >= minNearSpeedup-1
}

// Limits of [Result.Near], which only asks questions that are answered soon. Measured on 2 cores of an Intel Xeon
// (Granite Rapids), 2026-11-23: near questions took at most 23 ms of nine jobs, with and without batches that the
// devices divide. If not bounded, they take as long as the search: 72 ms after 68 ms for GPT-2 1558M with a batch of
// 100 on 4 nodes of 8 RTX 4090.
const (
	maxNearSpace    = 1 << 15 // plans of the problem's own space
	maxNearFamilies = 160     // families of the near question
)

// Near returns the fastest near question that is notably faster than own, the best plan of the result's problem,
// among those that are answered soon. ok is false if there is none. [Result.Beyond] asks all of them.
func (r *Result) Near(own Priced) (best Lever, ok bool) {
	if r.Counts.Space > maxNearSpace {
		return best, false
	}
	p := r.searcher.problem
	s := &Series{memo: *r.searcher.Memo()}
	for _, t := range nearTrials(p) {
		if l, faster := s.nearLever(&t, own, p.GlobalBatch, maxNearFamilies); faster && l.Speedup > best.Speedup {
			best, ok = l, true
		}
	}
	return best, ok
}

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
