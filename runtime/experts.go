package runtime

import "github.com/planc-dev/planc/runtime/cpu"

// Rounds is how many rounds the experts of a block need for the tokens of all ranks of a group, with so many places for
// each expert and rank.
func Rounds(r *Rank, group int, index []int32, experts, places int) int {
	r.pair[0] = float64(cpu.Rounds(index, experts, places))
	AllReduce(r, group, r.pair[:1], Max)
	return int(r.pair[0])
}
