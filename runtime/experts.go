package runtime

import "github.com/planc-dev/planc/runtime/cpu"

// Rounds is how many rounds the experts of a block need for the tokens of all ranks of a group, with so many places for
// each expert and rank.
func Rounds(r *Rank, group int, index []int32, experts, places int) int {
	r.pair[0] = float64(cpu.Rounds(index, experts, places))
	AllReduce(r, group, r.pair[:1], Max)
	n := int(r.pair[0])
	CountRounds(r, index, experts, n)
	return n
}

// CountRounds notes a block's choices and how many rounds there are, where a device has found that.
func CountRounds(r *Rank, index []int32, experts, rounds int) { r.experts.add(index, experts, rounds) }

// ForgetCounts forgets what was counted of experts, where a device that counts tells of a step: the one before may have
// been told since this one was begun.
func ForgetCounts(r *Rank) { r.experts.clear() }

// CountCensus notes the choices of a layer's router and how many rounds they need, where a device has counted: of each
// expert how many choose it, and how many of them are not dropped.
func CountCensus(r *Rank, segment, layer, rounds, experts int, of func(expert int) (all, kept int)) {
	x := r.experts.of(layerID{segment, layer}, experts)
	x.passes++
	x.rounds += rounds
	for e := range experts {
		all, kept := of(e)
		x.choices[e] += int64(all)
		x.dropped += int64(all - kept)
	}
}

// Layer is the layer whose function is being run.
func Layer(r *Rank) (segment, layer int) { return r.experts.at.segment, r.experts.at.layer }

// AddAux adds to what routers are trained with beside the loss. What is run again for a backward pass counts once.
func AddAux(r *Rank, x float64) {
	if Counting(r) {
		r.experts.aux += x
	}
}

// Counting tells whether what runs is counted: a forward pass of a training step that is not one run again.
func Counting(r *Rank) bool { return r.experts.counts }

// AuxScale is the gradient of a sequence's part of it, times the loss scale.
func AuxScale(r *Rank) float64 { return r.Scale / float64(r.Program.Batch.GlobalBatch) }

// AddStepAux is AddAux of all that a step counted, where a device sums it.
func AddStepAux(r *Rank, x float64) { r.experts.aux += x }
