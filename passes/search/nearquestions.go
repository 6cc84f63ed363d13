package search

import "github.com/planc-dev/planc/costmodel"

// minNearSpeedup is by which factor more tokens a second a near question must train on to be named.
const minNearSpeedup = 1.2

// nearTrials are questions near a problem whose answers may be far faster: half of the nodes, and one; and the batches
// next to its own that the number of devices divides, where that does not divide its own and they are no more than a
// half away.
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

// near is what a near question comes to, if that is notably faster than the best plan of the problem as it is. What
// cannot be is seen by bounds, so that it is soon known where nothing is. most is as [Series.within] has it.
func (t *Trial) near(r *Series, base Priced, batch, most int) (Lever, bool) {
	limit := base.Predict.StepS * costmodel.Seconds(float64(t.Problem.GlobalBatch)/float64(batch)/minNearSpeedup)
	best, ok, err := r.within(&t.Problem, limit*(1+rounding), most)
	if err != nil || !ok {
		return Lever{}, false // no plan is legal, fits, or is so fast
	}
	gain := costmodel.SixDigits(best.Predict.TokensPerS/base.Predict.TokensPerS - 1)
	return Lever{t.Name, t.Set, gain, &best}, gain >= minNearSpeedup-1
}

// What [Result.Near] looks at: questions whose answers are soon known. On 2 cores of an Intel Xeon (Granite Rapids),
// 2026-11-23, they made planc plan 23 ms longer at most, of nine jobs with batches that devices divide and others;
// where they are not bounded, they take as long as the search itself: 72 ms beside 68 for GPT-2 1558M with a batch of
// 100 on 4 nodes of 8 RTX 4090.
const (
	maxNearSpace    = 1 << 15 // of the problem's own space
	maxNearFamilies = 160     // of the near question's
)

// Near is the near question that is notably faster than own, the best plan of the result's problem, the fastest of
// those that are soon known; ok is false if there is none. [Result.Beyond] knows all of them.
func (r *Result) Near(own Priced) (best Lever, ok bool) {
	if r.Counts.Space > maxNearSpace {
		return best, false
	}
	p := r.searcher.problem
	s := &Series{p.Model, r.searcher.caches, r.searcher.clusterCosts}
	for _, t := range nearTrials(p) {
		if l, faster := t.near(s, own, p.GlobalBatch, maxNearFamilies); faster && l.Speedup > best.Speedup {
			best, ok = l, true
		}
	}
	return best, ok
}
