package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"
)

// balance splits the blocks over the chunks so that the slowest stage is as fast as possible, given the times of a
// block, the embedding and the head. It is exact if all blocks are alike, or if each stage has one chunk. With
// several chunks of unlike blocks, each block counts as the mean of all, and another split may be faster. Of equally
// fast splits of alike blocks it minimizes the slowest stage, then the next, and gives fewer blocks to earlier
// stages, which hold more micro-batches. Within a stage, chunks are as equal as possible, and those with the
// embedding or the head get fewer blocks. Memory is ignored; [Restricted] names that restriction.
func (b *stageBalancer) balance(plan *ir.Plan, costs []costmodel.Seconds) []int {
	n := plan.PP * plan.VPP
	b.fixedTime, b.minBlocks, b.maxBlocks = zeroed(b.fixedTime, plan.PP), zeroed(b.minBlocks, plan.PP),
		zeroed(b.maxBlocks, plan.PP)
	for st := range b.minBlocks {
		b.minBlocks[st] = plan.VPP
	}
	first, last := 0, plan.StageOf(n-1)
	if b.dims.Embed {
		b.fixedTime[first] += float64(costs[0])
		b.minBlocks[first]--
	}
	if b.dims.Head {
		b.fixedTime[last] += float64(costs[len(costs)-1])
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
func (b *stageBalancer) blockTime(costs []costmodel.Seconds) float64 {
	sum, blocks := costmodel.Seconds(0), 0
	for i, seg := range b.model.Segments {
		if i == 0 && b.dims.Embed || i == len(costs)-1 && b.dims.Head {
			continue
		}
		sum += costmodel.Seconds(seg.Count) * costs[i]
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
		if b.fixedTime[i]+b.block*float64(b.minBlocks[i]) > t*(1+price.Tie) {
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
		largest := -1
		for i := range b.maxBlocks {
			if b.maxBlocks[i] > b.minBlocks[i] &&
				(largest < 0 || b.fixedTime[i]+b.block*float64(b.maxBlocks[i]) >
					(b.fixedTime[largest]+b.block*float64(b.maxBlocks[largest]))*(1+price.Tie)) {
				largest = i
			}
		}
		b.maxBlocks[largest]--
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

// blockTimes returns the time of the forward and backward passes of the first i blocks together, for each i.
func (b *stageBalancer) blockTimes(costs []costmodel.Seconds) []float64 {
	sum := costmodel.Seconds(0)
	b.ends = append(b.ends[:0], 0)
	for i, seg := range b.model.Segments {
		if i == 0 && b.dims.Embed || i == len(costs)-1 && b.dims.Head {
			continue
		}
		for range seg.Count {
			sum += costs[i]
			b.ends = append(b.ends, float64(sum))
		}
	}
	return b.ends
}

// balanceUnlike splits unlike blocks into one run per stage, by dynamic programming over the number of blocks of the
// first stages. The slowest stage is as fast as possible. Of such splits, the sum of the squares of the stages' times
// is minimal; of equal ones, earlier stages have fewer blocks, because they hold more micro-batches. The result is
// valid until the next call.
func (b *stageBalancer) balanceUnlike(ends []float64) []int {
	stages, n := len(b.fixedTime), len(ends)
	slowest, squares, took := sized(b.tables[0], (stages+1)*n), sized(b.tables[1], (stages+1)*n),
		sized(b.tables[2], (stages+1)*n)
	b.tables = [3][]float64{slowest, squares, took}
	b.fillTable(slowest, ends, false, b.upperBound(ends), took)
	if math.IsInf(slowest[0], 1) {
		b.fillTable(slowest, ends, false, math.Inf(1), took)
	}
	b.fillTable(squares, ends, true, slowest[0]*(1+price.Tie), took)
	b.out = zeroed(b.out, stages)
	at := 0
	for st := range b.out {
		b.out[st] = int(took[st*n+at])
		at += b.out[st]
	}
	return b.out
}

// sized returns n numbers with any content, in the memory of another slice.
func sized(room []float64, n int) []float64 {
	if cap(room) < n {
		return make([]float64, n)
	}
	return room[:n]
}

// fillTable sets table[stage · len(ends) + block] to the minimum that the stages from that one on achieve for the
// blocks from that one on: the sum of the squares of their times, or the time of the slowest. No stage takes longer
// than most. took records how many blocks the stage takes for it, the smallest number. Only blocks that the earlier
// stages can reach are set.
func (b *stageBalancer) fillTable(table, ends []float64, squares bool, limit float64, took []float64) {
	n, latest := len(ends), b.reach(ends, limit)
	from, to := n-1, n-1
	table[len(b.fixedTime)*n+n-1] = 0
	for st := len(b.fixedTime) - 1; st >= 0; st-- {
		rest, first, last := table[(st+1)*n:(st+2)*n], n, -1
		for at := range latest[st] + 1 {
			best, count := math.Inf(1), 0
			for end := max(at+b.minBlocks[st], from); end <= to; end++ {
				time := b.fixedTime[st] + ends[end] - ends[at]
				v := max(time, rest[end])
				if squares {
					v = time*time + rest[end]
				} else if time >= best*(1-price.Tie) { // more blocks take longer
					break
				}
				if time > limit {
					break
				}
				if v < best*(1-price.Tie) || math.IsInf(best, 1) && v < best {
					best, count = v, end-at
				}
			}
			table[st*n+at], took[st*n+at] = best, float64(count)
			if !math.IsInf(best, 1) {
				first, last = min(first, at), at
			}
		}
		from, to = first, last
	}
}

// reach returns how many blocks the stages before each one can have at most, if none takes longer than limit.
func (b *stageBalancer) reach(ends []float64, limit float64) []int {
	b.latest = zeroed(b.latest, len(b.fixedTime))
	at := 0
	for st := range len(b.fixedTime) - 1 {
		end := at
		for end+1 < len(ends) && b.fixedTime[st]+ends[end+1]-ends[at] <= limit {
			end++
		}
		at, b.latest[st+1] = end, end
	}
	return b.latest
}

// upperBound returns a time slightly above the least in which all stages can be done. It may be too small if some
// stages have a minimum number of blocks.
func (b *stageBalancer) upperBound(ends []float64) float64 {
	const steps = 5 // each step halves the error, which starts at the time of one block
	last, low, block := len(b.fixedTime)-1, ends[len(ends)-1], 0.0
	for _, x := range b.fixedTime {
		low += x
	}
	low /= float64(len(b.fixedTime))
	for i, x := range ends[1:] {
		block = max(block, x-ends[i])
	}
	high := max(low, slices.Max(b.fixedTime)) + block
	for range steps {
		middle := (low + high) / 2
		if at := b.reach(ends, middle)[last]; b.fixedTime[last]+ends[len(ends)-1]-ends[at] <= middle {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
