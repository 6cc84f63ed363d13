package search

import "github.com/planc-dev/planc/costmodel"

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
	s := &Series{p.Model, r.searcher.caches, r.searcher.clusterCosts}
	for _, t := range nearTrials(p) {
		if l, faster := s.nearLever(&t, own, p.GlobalBatch, maxNearFamilies); faster && l.Speedup > best.Speedup {
			best, ok = l, true
		}
	}
	return best, ok
}
