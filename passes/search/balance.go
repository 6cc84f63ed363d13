package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// balance splits the blocks over the chunks so that the slowest stage is as fast as can be, by the times of a block,
// the embedding and the head: exactly where all blocks are alike, and where they are not, as where the first have no
// experts, if each stage has one chunk. Of several chunks each block then counts as the mean of all, and another split
// may be faster. Of splits of alike blocks it is the one in which no stage has more than it needs: the fastest of the
// slowest, then of the next, the earlier stages, which hold more micro-batches, with less. Within a stage the chunks
// are as equal as can be, those with the embedding or the head the smaller. It does not look at memory: search calls
// that restriction by its name.
func (s *searcher) balance(plan *ir.Plan, costs []costSums) []int {
	n, b := plan.PP*plan.VPP, &s.balancing
	b.load, b.least, b.most = zeroed(b.load, plan.PP), zeroed(b.least, plan.PP), zeroed(b.most, plan.PP)
	for st := range b.least {
		b.least[st] = plan.VPP
	}
	first, last := 0, plan.StageOf(n-1)
	if s.dims.Embed {
		b.load[first] += float64(costs[0].whole())
		b.least[first]--
	}
	if s.dims.Head {
		b.load[last] += float64(costs[len(costs)-1].whole())
		b.least[last]--
	}
	if plan.VPP == 1 && s.problem.unlike(&s.dims) {
		return b.runs(s.blockTimes(costs))
	}
	b.block = s.blockTime(costs)
	b.stages(s.dims.Layers)
	return s.spread(plan, b.most)
}

// balancing is a split under way, with room that is used again for the next.
type balancing struct {
	load  []float64 // of each stage, beside its blocks
	least []int     // blocks that it has at least
	most  []int     // as many as end in time, and in the end as many as it gets
	block float64   // time of a block
	out   []int     // of each chunk

	ends []float64 // of unlike blocks: of the first so many, their times together
	room [3][]float64

	latest []int // of each stage: blocks that those before it can have done
}

// zeroed is a list of n zeros, in the room of another.
func zeroed[T int | float64](room []T, n int) []T {
	if cap(room) < n {
		return make([]T, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// blockTime is a block's forward and backward pass, in the mean over the segments of blocks.
func (s *searcher) blockTime(costs []costSums) float64 {
	sum, blocks := costmodel.Seconds(0), 0
	for i, seg := range s.problem.Model.Segments {
		if i == 0 && s.dims.Embed || i == len(costs)-1 && s.dims.Head {
			continue
		}
		sum += costmodel.Seconds(seg.Count) * costs[i].whole()
		blocks += seg.Count
	}
	return float64(sum) / float64(max(1, blocks))
}

// within finds how many of the blocks each stage can do in a time, and how many that is in all; 0 if one cannot even do
// what it has at least.
func (b *balancing) within(t float64, blocks int) (sum int) {
	for i := range b.most {
		if i > 0 && b.load[i] == b.load[i-1] && b.least[i] == b.least[i-1] { // most stages are alike
			b.most[i] = b.most[i-1]
			sum += b.most[i]
			continue
		}
		if b.load[i]+b.block*float64(b.least[i]) > t*(1+tie) {
			return 0
		}
		b.most[i] = max(b.least[i], min(blocks, int(math.Floor((t-b.load[i])/b.block+1e-9))))
		sum += b.most[i]
	}
	return sum
}

// stages finds how many of the blocks each stage gets: in the least time in which all of them are done, from which it
// takes back what is too many.
func (b *balancing) stages(blocks int) {
	best := math.Inf(1)
	for i, x := range b.load {
		if slices.Contains(b.load[:i], x) {
			continue
		}
		low, high := 0, blocks
		for low < high {
			k := (low + high) / 2
			if b.within(x+b.block*float64(k), blocks) >= blocks {
				high = k
			} else {
				low = k + 1
			}
		}
		if b.within(x+b.block*float64(low), blocks) >= blocks {
			best = min(best, x+b.block*float64(low))
		}
	}
	for sum := b.within(best, blocks); sum > blocks; sum-- {
		most := -1
		for i := range b.most {
			if b.most[i] > b.least[i] &&
				(most < 0 || b.load[i]+b.block*float64(b.most[i]) >
					(b.load[most]+b.block*float64(b.most[most]))*(1+tie)) {
				most = i
			}
		}
		b.most[most]--
	}
}

// spread gives each stage's blocks to its chunks: as equal as can be, what is left over to the first of those with
// neither the embedding nor the head. What it returns holds until the next call.
func (s *searcher) spread(plan *ir.Plan, stages []int) []int {
	n, pp := plan.PP*plan.VPP, plan.PP
	b := &s.balancing
	b.out, b.least = zeroed(b.out, n), zeroed(b.least, len(stages))
	left := 0 // over
	for st, blocks := range stages {
		b.out[st], b.least[st] = blocks/plan.VPP, blocks%plan.VPP
		left += b.least[st]
	}
	for c := pp; c < n; c += pp {
		copy(b.out[c:c+pp], b.out[:pp])
		if plan.Schedule == "zb-v" { // which has two rows of chunks
			slices.Reverse(b.out[c : c+pp])
		}
	}
	light := func(c int) bool { return c == 0 && s.dims.Embed || c == n-1 && s.dims.Head }
	for _, last := range []bool{false, true} {
		for c := 0; c < n && left > 0; c++ {
			if st := plan.StageOf(c); b.least[st] > 0 && light(c) == last {
				b.out[c]++
				b.least[st]--
				left--
			}
		}
	}
	return b.out
}
