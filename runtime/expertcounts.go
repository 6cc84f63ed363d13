package runtime

import (
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/rank"
)

// Rounds returns how many rounds the experts of a block need for the tokens of all ranks of a group, if each expert has
// places slots per rank and round.
func Rounds(r *rank.Rank, group int, index []int32, experts, places int) int {
	r.Pair[0] = float64(cpu.Rounds(index, experts, places))
	AllReduce(r, group, r.Pair[:1], Max)
	n := int(r.Pair[0])
	CountRounds(r, index, experts, n)
	return n
}

// CountRounds records a block's choices and its number of rounds, if a device has computed them.
func CountRounds(r *rank.Rank, index []int32, experts, rounds int) {
	r.Experts.Add(index, experts, rounds)
}

// ClearCounts clears what was counted of experts. A device that counts calls it before it reports a step, because the
// step before may have been reported after this one began.
func ClearCounts(r *rank.Rank) { r.Experts.Clear() }

// CountCensus records the choices of a layer's router and their rounds, if a device has counted them. The function
// returns for each expert how many tokens chose it, and how many of these were not dropped.
func CountCensus(r *rank.Rank, segment, layer, rounds, experts int, counts func(expert int) (all, accepted int)) {
	x := r.Experts.Layer(rank.LayerID{Segment: segment, Layer: layer}, experts)
	x.Passes++
	x.Rounds += rounds
	for e := range experts {
		all, accepted := counts(e)
		x.Choices[e] += int64(all)
		x.Dropped += int64(all - accepted)
	}
}

// Layer returns the layer whose function is running.
func Layer(r *rank.Rank) (segment, layer int) { return r.Experts.At.Segment, r.Experts.At.Layer }

// AddAux adds to the routers' auxiliary loss. A recomputed forward pass counts once.
func AddAux(r *rank.Rank, x float64) {
	if IsCounting(r) {
		r.Experts.Aux += x
	}
}

// IsCounting reports whether experts' choices count now: in a forward pass of a training step that is not recomputed.
func IsCounting(r *rank.Rank) bool { return r.Experts.Counting }

// AuxScale returns the gradient of one sequence's auxiliary loss, times the loss scale.
func AuxScale(r *rank.Rank) float64 { return r.Scale / float64(r.Program.Batch.GlobalBatch) }

// AddStepAux adds the auxiliary loss of a whole step, if a device sums it.
func AddStepAux(r *rank.Rank, x float64) { r.Experts.Aux += x }
