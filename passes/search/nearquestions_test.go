package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// slowProblem is GPT-2 1558M on nodes of 7 GPUs with one NIC of 1 Gb/s each, for which one node is fastest.
func slowProblem(t testing.TB, nodes, batch int) *Problem {
	c := cluster(t, "rtx-4090", nodes, 7)
	c.Network = []costmodel.Tier{{NICs: 1, Bandwidth: costmodel.GBs / 8, LatencyUS: 30, Nodes: nodes,
		Oversubscription: 1}}
	c.Node.Link.Bandwidth = 6 * costmodel.GBs
	return problem(c, gpt2Config(48, 1600, 25, 50257, 1024), 1024, batch, mixed)
}

// Near questions are half of the nodes, one node, and the nearest batches that the devices divide.
func TestNearTrials(t *testing.T) {
	for _, x := range []struct {
		nodes, batch int
		want         []string
	}{
		{3, 64, []string{"nodes 1", "near_batch 63", "near_batch 84"}},
		{3, 63, []string{"nodes 1"}},
		{4, 56, []string{"nodes 2", "nodes 1"}},
		{9, 100, []string{"nodes 4", "nodes 1", "near_batch 63", "near_batch 126"}},
		{1, 6, []string{"near_batch 7"}},
		{1, 4, nil}, // 7 is nearly twice as many
		{1, 70, nil},
	} {
		p := slowProblem(t, x.nodes, x.batch)
		var got []string
		for _, trial := range nearTrials(p) {
			for _, v := range trial.Set {
				got = append(got, fmt.Sprintf("%s %v", trial.Name, v))
			}
			if nodes := trial.Problem.Cluster.Nodes; trial.Name == "nodes" && (trial.Set["cluster.nodes"] != nodes ||
				p.Cluster.Nodes != x.nodes) {
				t.Errorf("%v is asked on %d nodes, the problem itself on %d", trial.Set, nodes, p.Cluster.Nodes)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%d nodes, batch %d: near questions %q; want %q", x.nodes, x.batch, got, x.want)
		}
	}
}

// If one node is far faster because the network is slow, explain says so, and plan too because the answer is found
// soon.
func TestNear(t *testing.T) {
	r := must(t, slowProblem(t, 3, 64))
	best, ok := r.Near(r.Best)
	if !ok || best.Set["cluster.nodes"] != 1 || best.Speedup < 0.2 {
		t.Errorf("of three nodes on a slow network %v is faster: %v", best.Set, ok)
	}
	var levers []Lever
	for _, l := range r.Beyond(1558e6, r.Fastest).Levers {
		if l.Name == "nodes" || l.Name == "near_batch" {
			levers = append(levers, l)
		}
	}
	if !slices.ContainsFunc(levers, func(l Lever) bool {
		return l.Set["cluster.nodes"] == 1 && *l.Best == *best.Best
	}) {
		t.Errorf("levers %+v are without %+v", levers, best)
	}
	fast := must(t, problem(cluster(t, "dgx-h100", 2, 0), gpt2Config(48, 1600, 25, 50257, 1024), 1024, 512, mixed))
	if l, ok := fast.Near(fast.Fastest); ok {
		t.Errorf("on a fast network %+v is faster", l)
	}
	if n := len(fast.Beyond(1558e6, fast.Best).Levers); n != len(leverTrials(fast.searcher.problem)) {
		t.Errorf("%d levers where nothing near is faster", n)
	}
}

// Near questions have the answers of new searches: what is skipped is not notably faster.
func TestNearOfMany(t *testing.T) {
	onlyBrute(t)
	seen := map[string]int{}
	for seed := range uint64(40) {
		p := randomProblem(t, rand.New(rand.NewPCG(seed, 41)))
		p.GlobalBatch++ // few numbers of devices divide it
		if seed%2 == 0 && len(p.Cluster.Network) > 0 {
			p.GlobalBatch--
		}
		r, err := Search(p)
		if err != nil {
			continue
		}
		s := &Series{memo: *r.searcher.Memo()}
		for _, trial := range nearTrials(p) {
			got, ok := s.nearLever(&trial, r.Fastest, p.GlobalBatch, 0)
			want, fits := new(Series).fastest(&trial.Problem)
			faster := fits && costmodel.SixDigits(want.Predict.TokensPerS/r.Fastest.Predict.TokensPerS-1) >=
				minNearSpeedup-1
			if ok != faster || ok && *got.Best != want {
				t.Errorf("seed %d: %v comes to %v, %+v; a search from nothing to %v (%v)", seed, trial.Set, ok, got,
					want.Plan.Text(), fits)
			}
			seen[fmt.Sprint(trial.Name, " ", ok)]++
		}
	}
	t.Log(seen)
	for _, what := range []string{"nodes true", "nodes false", "near_batch true", "near_batch false"} {
		if seen[what] < 2 {
			t.Errorf("seen %v", seen)
		}
	}
}
