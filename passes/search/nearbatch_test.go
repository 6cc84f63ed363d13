package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// Near batches are multiples of the devices, or of a part of them that divides a node, on either side, the nearest
// first.
func TestNearBatches(t *testing.T) {
	for _, c := range []struct {
		nodes, devices, batch int
		want                  []int
	}{
		{54, 8, 512, []int{486, 540, 432, 648}},
		{48, 8, 512, []int{528, 480, 576, 384, 768}},
		{12, 8, 512, []int{516, 504, 528, 480, 576}},
		{64, 8, 512, nil},
		{128, 8, 512, nil}, // half of the devices divides it, and 1,024 is twice as many
		{1, 6, 8, []int{9, 6, 12}},
		{1, 1, 7, nil},
	} {
		p := problem(cluster(t, "dgx-h100", c.nodes, c.devices), gpt2Config(12, 768, 12, 50257, 1024), 1024,
			c.batch, mixed)
		if got := NearBatches(p); !slices.Equal(got, c.want) {
			t.Errorf("%d × %d devices, batch %d: %v, want %v", c.nodes, c.devices, c.batch, got, c.want)
		}
	}
}

// NearBatch equals new searches of the batches in order, in which one replaces another if it gains 2 % more.
func TestNearBatchOfMany(t *testing.T) {
	seen := map[bool]int{}
	for seed := range uint64(draws(14)) {
		p := randomProblem(t, rand.New(rand.NewPCG(seed, 43)))
		if seed%3 > 0 {
			p.GlobalBatch++ // few numbers of devices divide it
		}
		var r Series
		base, _, err := r.Best(p)
		if err != nil {
			continue
		}
		want, gained := 0, 0.05
		for _, n := range NearBatches(p) {
			q := *p
			q.GlobalBatch = n
			best, fits := new(Series).fastest(&q)
			if gain := best.Predict.TokensPerS/base.Predict.TokensPerS - 1; fits && gain >= gained {
				want, gained = n, gain+0.02
			}
		}
		var plan Priced
		if want > 0 {
			q := *p
			q.GlobalBatch = want
			plan, _, err = new(Series).Best(&q)
			if err != nil {
				t.Fatal(err)
			}
			if costmodel.SixDigits(plan.Predict.TokensPerS/base.Predict.TokensPerS-1) < 0.05 {
				want = 0
			}
		}
		got, ok := r.NearBatch(p, base)
		if ok != (want > 0) || ok && (got.Set["train.global_batch"] != want || *got.Best != plan) {
			t.Errorf("seed %d: batch %d on %d devices: %v (%v), want %d", seed, p.GlobalBatch, p.Cluster.Devices(),
				got.Set, ok, want)
		}
		seen[ok]++
	}
	t.Log(fmt.Sprint(seen))
	if seen[true] < draws(3) || seen[false] < draws(3) {
		t.Errorf("seen %v", seen)
	}
}
