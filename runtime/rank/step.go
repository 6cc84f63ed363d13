package rank

import (
	"math"

	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// LoadBatch copies the rank's rows of a batch into its arena.
func LoadBatch(r *Rank, b *feed.Batch, micro int) {
	if r.Program.Elem == program.F64 {
		place[float64](r, b, micro)
	} else {
		place[float32](r, b, micro)
	}
	if r.Device != nil {
		r.Device.Load()
	}
}

func clearLoss(r *Rank) { r.LossSum, r.reduced = 0, false }

// showTokens puts tokens into the first positions of row 0 of micro-batch 0. Everything else is token 0 of type 0,
// masked. An image model sees the pixels of the last batch.
func showTokens(r *Rank, tokens []int32) {
	l, in := &r.Program.Batch, &r.Stage.Inputs
	n := l.MicroBatch * seqLen(r)
	if in.Tokens > 0 {
		rows := tensors.View[int32](&r.Store, in.Tokens, n)
		clear(rows)
		eachRun(r, 0, func(at, from, width int) {
			copy(rows[at:at+width], tokens[min(from, len(tokens)):])
		})
	}
	if in.Types > 0 {
		clear(tensors.View[int32](&r.Store, in.Types, n))
	}
	if l.Documents { // the text is one document
		for j := range l.MicroBatch {
			placeBorders(r, j, make([]int32, l.SeqLen))
		}
	}
	clear(tensors.View[int32](&r.Store, in.Labels, n))
	clear(r.Arena[in.Mask : in.Mask+n*r.Program.Elem.Size()])
	if r.Device != nil {
		r.Device.Load()
	}
}

// Logits returns the logits of row 0 for the first vocab tokens.
func (r *Rank) Logits(vocab int) []float64 {
	n := min(vocab, r.Program.Model.Vocab)
	out := make([]float64, n)
	tensors.Read(&r.Store, r.Program.TensorTypes().Compute, r.Stage.Arena.Logits.Offset, out)
	return out
}

// AfterSkip replaces a step's Scale and Hyper.T if the step before it, whose result is not known yet, was skipped.
type AfterSkip struct {
	Scale float64
	T     int
}

// StepResult is a device's result of a step, in addition to the fields of the rank.
type StepResult struct {
	Seconds float64 // from the end of the step before; from the step's own start if the device was idle then
	// The step was aborted before it changed any state: it and all later steps must be retried.
	Retry bool
}

// StepInput is what a rank needs of a step in addition to its batch.
type StepInput struct {
	ID        int    // number of the step, counted from 1
	Seed      uint64 // of dropout
	Hyper     Hyper
	Scale     float64 // of the loss
	AfterSkip AfterSkip
}

// BeginStep runs an optimizer step on a batch. On a device it only starts the step.
func (r *Rank) BeginStep(in *StepInput, b *feed.Batch) {
	r.compute.Reset()
	r.communication.Reset()
	step := beginPart(r, timeline.Other, "step", "", in.ID)
	data := beginPart(r, timeline.Data, "load batch", "", -1)
	LoadBatch(r, b, r.Program.Batch.MicroBatches)
	r.compute.End(data)
	r.Training, r.StepID, r.Seed, r.Hyper = true, in.ID, in.Seed, in.Hyper
	r.Norm, r.Clip, r.Skip, r.Scale, r.AfterSkip = math.NaN(), 1, false, in.Scale, in.AfterSkip
	r.counted = 0
	if r.Device != nil { // the ranks' host goroutines do not communicate
		r.counted = b.Counted()
	}
	clearLoss(r)
	r.Experts.Clear()
	runStep(r)
	r.compute.End(step)
	r.compute.Stop()
}

// AwaitStep waits for the device's result of the first unfinished step.
func (r *Rank) AwaitStep() {
	if r.Device != nil {
		r.result = r.Device.AwaitStep()
		r.reduced = true
	}
}

// StepResult returns the device's result of the last finished step.
func (r *Rank) StepResult() StepResult { return r.result }

// Evaluate computes the loss of a batch of validation samples, whose first has a number.
func (r *Rank) Evaluate(b *feed.Batch, first int) {
	LoadBatch(r, b, 1)
	r.Training, r.EvalFirst = false, first+1
	clearLoss(r)
	runEval(r)
	r.EvalFirst = 0
}

// ComputeLogits computes the logits at position pos of a text.
func (r *Rank) ComputeLogits(text []int32, pos int) {
	r.Training, r.Pos = false, pos
	showTokens(r, text)
	runLogits(r)
}

// HasHead reports whether the rank has the model's last block.
func (r *Rank) HasHead() bool {
	chunks := r.exec.chunks
	return chunks[len(chunks)-1].to == nil
}

// CloseJobs ends serve.
func (r *Rank) CloseJobs() { close(r.jobs) }

// SetDiagnosis makes the rank poison memory that becomes invalid, and call onChoice with each choice of experts.
func (r *Rank) SetDiagnosis(poison bool, onChoice func(*Choice)) {
	r.poison, r.OnChoice = poison, onChoice
}

// LossSum returns the sum of the token losses of all replicas. If the program has not reduced it, the ranks of one
// replica that have the same positions hold the sum for these positions, or 0.
func LossSum(ranks []*Rank) float64 {
	if ranks[0].reduced {
		return ranks[0].LossSum
	}
	batch := &ranks[0].Program.Batch
	parts := ranks[0].Program.Ranks(batch.SeqAxes)
	sums := make([]float64, batch.Replicas*parts)
	for _, k := range ranks {
		part, _ := k.Program.Along(k.Coord, batch.SeqAxes)
		if i := k.Replica()*parts + part; math.IsNaN(k.LossSum) || math.Abs(k.LossSum) > math.Abs(sums[i]) {
			sums[i] = k.LossSum
		}
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}
