package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// blockTimes returns the time of the forward and backward passes of the first i blocks together, for each i.
func (b *stageBalancer) blockTimes(costs []layerTimes) []float64 {
	sum := costmodel.Seconds(0)
	b.ends = append(b.ends[:0], 0)
	for i, seg := range b.model.Segments {
		if i == 0 && b.dims.Embed || i == len(costs)-1 && b.dims.Head {
			continue
		}
		for range seg.Count {
			sum += costs[i].total()
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
	b.fillTable(squares, ends, true, slowest[0]*(1+tie), took)
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
func (b *stageBalancer) fillTable(table, ends []float64, squares bool, most float64, took []float64) {
	n, latest := len(ends), b.reach(ends, most)
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
				} else if time >= best*(1-tie) { // more blocks take longer
					break
				}
				if time > most {
					break
				}
				if v < best*(1-tie) || math.IsInf(best, 1) && v < best {
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

// reach returns how many blocks the stages before each one can have at most, if none takes longer than most.
func (b *stageBalancer) reach(ends []float64, most float64) []int {
	b.latest = zeroed(b.latest, len(b.fixedTime))
	at := 0
	for st := range len(b.fixedTime) - 1 {
		end := at
		for end+1 < len(ends) && b.fixedTime[st]+ends[end+1]-ends[at] <= most {
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
