package search

import (
	"math"

	"github.com/planc-dev/planc/costmodel"
)

// blockTimes are the forward and backward passes of the first blocks together, for each number of them.
func (s *searcher) blockTimes(costs []layerCost) []float64 {
	b, sum := &s.balancing, costmodel.Seconds(0)
	b.ends = append(b.ends[:0], 0)
	for i, seg := range s.problem.Model.Segments {
		if i == 0 && s.dims.Embed || i == len(costs)-1 && s.dims.Head {
			continue
		}
		for range seg.Count {
			sum += costs[i].sum()
			b.ends = append(b.ends, float64(sum))
		}
	}
	return b.ends
}

// runs splits blocks that differ into a run for each stage, by dynamic programming over how many blocks the first stages
// have: the slowest stage is as fast as can be, and of such splits the squares of the stages' times are the least together;
// of equal ones the earlier stages, which hold more micro-batches, have fewer blocks. What it returns holds until the next call.
func (b *balancing) runs(ends []float64) []int {
	stages, n := len(b.load), len(ends)
	slowest := zeroed(b.room[0], (stages+1)*n)
	squares := zeroed(b.room[1], (stages+1)*n)
	took := zeroed(b.room[2], (stages+1)*n)
	b.room = [3][]float64{slowest, squares, took}
	b.fill(slowest, ends, func(time, rest float64) float64 { return max(time, rest) }, math.Inf(1), nil)
	most := slowest[0] * (1 + tie)
	b.fill(squares, ends, func(time, rest float64) float64 { return time*time + rest }, most, took)
	b.out = zeroed(b.out, stages)
	at := 0
	for st := range b.out {
		b.out[st] = int(took[st*n+at])
		at += b.out[st]
	}
	return b.out
}

// fill sets, at [stage · len(ends) + block], what the stages from one on make of the blocks from one on: the least that join has of
// a stage's time and of what the stages after it make of the rest. No stage takes longer than most. took notes how many
// blocks the stage takes for it, the fewest.
func (b *balancing) fill(table, ends []float64, join func(time, rest float64) float64, most float64, took []float64) {
	n, stages := len(ends), len(b.load)
	for at := range n - 1 {
		table[stages*n+at] = math.Inf(1)
	}
	for st := stages - 1; st >= 0; st-- {
		for at := range n {
			best, count := math.Inf(1), 0
			for k := b.least[st]; at+k < n; k++ {
				time := b.load[st] + ends[at+k] - ends[at]
				if time > most {
					break
				}
				if v := join(time, table[(st+1)*n+at+k]); v < best*(1-tie) || math.IsInf(best, 1) && v < best {
					best, count = v, k
				}
			}
			table[st*n+at] = best
			if took != nil {
				took[st*n+at] = float64(count)
			}
		}
	}
}
