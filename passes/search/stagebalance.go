package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// balance splits the blocks over the chunks so that the slowest stage is as fast as possible, given the times of a
// block, the embedding and the head. It is exact if all blocks are alike, or if each stage has one chunk. With
// several chunks of unlike blocks, each block counts as the mean of all, and another split may be faster. Of equally
// fast splits of alike blocks it minimizes the slowest stage, then the next, and gives fewer blocks to earlier
// stages, which hold more micro-batches. Within a stage, chunks are as equal as possible, and those with the
// embedding or the head get fewer blocks. Memory is ignored; [Restricted] names that restriction.
func (b *stageBalancer) balance(plan *ir.Plan, costs []layerTimes) []int {
	n := plan.PP * plan.VPP
	b.fixedTime, b.minBlocks, b.maxBlocks = zeroed(b.fixedTime, plan.PP), zeroed(b.minBlocks, plan.PP),
		zeroed(b.maxBlocks, plan.PP)
	for st := range b.minBlocks {
		b.minBlocks[st] = plan.VPP
	}
	first, last := 0, plan.StageOf(n-1)
	if b.dims.Embed {
		b.fixedTime[first] += float64(costs[0].total())
		b.minBlocks[first]--
	}
	if b.dims.Head {
		b.fixedTime[last] += float64(costs[len(costs)-1].total())
		b.minBlocks[last]--
	}
	if plan.VPP == 1 && space.HasUnlikeBlocks(b.model, &b.dims) {
		return b.balanceUnlike(b.blockTimes(costs))
	}
	b.block = b.blockTime(costs)
	b.balanceAlike(b.dims.Layers)
	return b.spreadOverChunks(plan, b.maxBlocks)
}

// stageBalancer is the state of one split, with buffers that are reused.
type stageBalancer struct {
	model *ir.Model
	dims  Dims

	fixedTime []float64 // time of each stage without its blocks
	minBlocks []int     // least number of blocks of each stage
	// blocks that each stage can finish in time, and in the end its number of blocks
	maxBlocks []int
	block     float64 // time of a block
	out       []int   // blocks of each chunk

	ends   []float64 // of unlike blocks: the time of the first i blocks together
	tables [3][]float64

	latest []int // of each stage: the most blocks that earlier stages can have
}

// zeroed returns n zeros in the memory of another slice.
func zeroed[T int | float64](room []T, n int) []T {
	if cap(room) < n {
		return make([]T, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// blockTime returns the mean time of a block's forward and backward pass.
func (b *stageBalancer) blockTime(costs []layerTimes) float64 {
	sum, blocks := costmodel.Seconds(0), 0
	for i, seg := range b.model.Segments {
		if i == 0 && b.dims.Embed || i == len(costs)-1 && b.dims.Head {
			continue
		}
		sum += costmodel.Seconds(seg.Count) * costs[i].total()
		blocks += seg.Count
	}
	return float64(sum) / float64(max(1, blocks))
}

// blocksWithin computes how many of the blocks each stage can do within a time, and returns their sum; 0 if a stage
// cannot even do its minimum.
func (b *stageBalancer) blocksWithin(t float64, blocks int) (sum int) {
	for i := range b.maxBlocks {
		if i > 0 && b.fixedTime[i] == b.fixedTime[i-1] && b.minBlocks[i] == b.minBlocks[i-1] { // most stages are alike
			b.maxBlocks[i] = b.maxBlocks[i-1]
			sum += b.maxBlocks[i]
			continue
		}
		if b.fixedTime[i]+b.block*float64(b.minBlocks[i]) > t*(1+tie) {
			return 0
		}
		b.maxBlocks[i] = max(b.minBlocks[i], min(blocks, int(math.Floor((t-b.fixedTime[i])/b.block+1e-9))))
		sum += b.maxBlocks[i]
	}
	return sum
}

// balanceAlike computes the number of blocks per stage: the least time in which the stages can do all blocks, minus
// the surplus blocks.
func (b *stageBalancer) balanceAlike(blocks int) {
	best := math.Inf(1)
	for i, x := range b.fixedTime {
		if slices.Contains(b.fixedTime[:i], x) {
			continue
		}
		low, high := 0, blocks
		for low < high {
			k := (low + high) / 2
			if b.blocksWithin(x+b.block*float64(k), blocks) >= blocks {
				high = k
			} else {
				low = k + 1
			}
		}
		if b.blocksWithin(x+b.block*float64(low), blocks) >= blocks {
			best = min(best, x+b.block*float64(low))
		}
	}
	for sum := b.blocksWithin(best, blocks); sum > blocks; sum-- {
		most := -1
		for i := range b.maxBlocks {
			if b.maxBlocks[i] > b.minBlocks[i] &&
				(most < 0 || b.fixedTime[i]+b.block*float64(b.maxBlocks[i]) >
					(b.fixedTime[most]+b.block*float64(b.maxBlocks[most]))*(1+tie)) {
				most = i
			}
		}
		b.maxBlocks[most]--
	}
}

// spreadOverChunks distributes each stage's blocks over its chunks as equally as possible. Surplus blocks go first to
// chunks with neither the embedding nor the head. The result is valid until the next call.
func (b *stageBalancer) spreadOverChunks(plan *ir.Plan, stages []int) []int {
	n, pp := plan.PP*plan.VPP, plan.PP
	b.out, b.minBlocks = zeroed(b.out, n), zeroed(b.minBlocks, len(stages))
	left := 0 // blocks that are left over
	for st, blocks := range stages {
		b.out[st], b.minBlocks[st] = blocks/plan.VPP, blocks%plan.VPP
		left += b.minBlocks[st]
	}
	for c := pp; c < n; c += pp {
		copy(b.out[c:c+pp], b.out[:pp])
		if plan.Schedule == "zb-v" { // two chunks per stage, the second in reverse order
			slices.Reverse(b.out[c : c+pp])
		}
	}
	light := func(c int) bool { return c == 0 && b.dims.Embed || c == n-1 && b.dims.Head }
	for _, last := range []bool{false, true} {
		for c := 0; c < n && left > 0; c++ {
			if st := plan.StageOf(c); b.minBlocks[st] > 0 && light(c) == last {
				b.out[c]++
				b.minBlocks[st]--
				left--
			}
		}
	}
	return b.out
}
