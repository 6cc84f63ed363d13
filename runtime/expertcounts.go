package runtime

import "github.com/planc-dev/planc/runtime/cpu"

// Rounds returns how many rounds the experts of a block need for the tokens of all ranks of a group, if each expert has
// places slots per rank and round.
func Rounds(r *Rank, group int, index []int32, experts, places int) int {
	r.pair[0] = float64(cpu.Rounds(index, experts, places))
	AllReduce(r, group, r.pair[:1], Max)
	n := int(r.pair[0])
	CountRounds(r, index, experts, n)
	return n
}

// CountRounds records a block's choices and its number of rounds, if a device has computed them.
func CountRounds(r *Rank, index []int32, experts, rounds int) { r.experts.add(index, experts, rounds) }

// ClearCounts clears what was counted of experts. A device that counts calls it before it reports a step, because the
// step before may have been reported after this one began.
func ClearCounts(r *Rank) { r.experts.clear() }

// CountCensus records the choices of a layer's router and their rounds, if a device has counted them. The function
// returns for each expert how many tokens chose it, and how many of these were not dropped.
func CountCensus(r *Rank, segment, layer, rounds, experts int, counts func(expert int) (all, kept int)) {
	x := r.experts.layer(layerID{segment, layer}, experts)
	x.passes++
	x.rounds += rounds
	for e := range experts {
		all, kept := counts(e)
		x.choices[e] += int64(all)
		x.dropped += int64(all - kept)
	}
}

// Layer returns the layer whose function is running.
func Layer(r *Rank) (segment, layer int) { return r.experts.at.segment, r.experts.at.layer }

// AddAux adds to the routers' auxiliary loss. A recomputed forward pass counts once.
func AddAux(r *Rank, x float64) {
	if IsCounting(r) {
		r.experts.aux += x
	}
}

// IsCounting reports whether experts' choices count now: in a forward pass of a training step that is not recomputed.
func IsCounting(r *Rank) bool { return r.experts.counting }

// AuxScale returns the gradient of one sequence's auxiliary loss, times the loss scale.
func AuxScale(r *Rank) float64 { return r.Scale / float64(r.Program.Batch.GlobalBatch) }

// AddStepAux adds the auxiliary loss of a whole step, if a device sums it.
func AddStepAux(r *Rank, x float64) { r.experts.aux += x }
