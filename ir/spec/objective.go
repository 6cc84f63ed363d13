package spec

import "github.com/planc-dev/planc/ir"

// Kinds of objective.
const (
	Throughput = "throughput"
	Devices    = "devices"
	Cost       = "cost"
	Energy     = "energy"
)

// objective checks that the job has the fields that its kind of objective needs, and none that it ignores.
func (j *recipeCheck) objective() {
	o := j.Objective
	rate, days := j.Has("objective.rate"), j.Has("objective.days")
	switch {
	case o.Kind == Throughput && (rate || days):
		key := "objective.days"
		if rate {
			key = "objective.rate"
		}
		*j.diags = append(*j.diags, ir.Diag{Pos: j.Pos(key), Code: Conflict, Fix: "objective.kind=devices",
			Msg: key + " has no effect with objective throughput; it applies to devices, cost and energy"})
	case o.Kind == Devices && !rate && !days:
		j.diags.Addf(j.Pos("objective.kind"), Missing,
			"objective.rate is missing (or objective.days): objective devices looks for the fewest devices "+
				"that reach it")
	}
	if days && o.Kind != Throughput && !j.Has("train.tokens") && !j.Has("train.steps") {
		j.diags.Addf(j.Pos("objective.days"), Missing,
			"train.tokens is missing (or train.steps): objective.days limits the whole training")
	}
}

// TrainTokens returns the tokens of the whole training, with steps of batch sequences of seq tokens. It is 0 if the job
// does not say, or counts epochs of data, which planning does not read.
func (j *Job) TrainTokens(batch, seq int) float64 {
	if t := j.Train.Tokens; t > 0 {
		return float64(t)
	}
	return float64(j.Train.Steps) * float64(batch) * float64(seq)
}

// Goal returns the rate in tokens per second that the objective requires, 0 if it requires none.
func (j *Job) Goal() float64 {
	goal := j.Objective.Rate
	if d := j.Objective.Days; d > 0 {
		goal = max(goal, j.TrainTokens(j.Train.GlobalBatch, j.Train.SeqLen)/(d*24*60*60))
	}
	return goal
}
