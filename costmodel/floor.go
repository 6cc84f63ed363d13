package costmodel

// Floor holds the inputs of a lower bound of a pipelined step.
type Floor struct {
	Micro             int
	Forward, Backward []Seconds // lower bounds of each chunk's pass over a micro-batch, in the model's order
	Weights           []Seconds // second part of a split backward pass; nil if it is not split
	Output, Grad      Seconds   // of a message
	StageOf           []int     // the stage of each chunk
	Stages            int
}

// Seconds returns a lower bound of the time of the passes under any schedule. A stage cannot start before the first
// micro-batch has passed the stages before it, and runs all of its passes in sequence. After its last backward pass,
// which is of its first chunk or a later one, gradients pass the stages before it. A stage's first chunk has the
// stage's own number. If backward is split, a stage's last pass may be one that no other stage waits for.
func (f *Floor) Seconds() Seconds {
	work := make([]Seconds, f.Stages)
	through := Seconds(0)
	for c, s := range f.StageOf {
		one := f.Forward[c] + f.Backward[c]
		through += one
		if f.Weights != nil {
			one += f.Weights[c]
		}
		work[s] += Seconds(f.Micro) * one
		if c > 0 && f.StageOf[c-1] != s {
			through += f.Output + f.Grad
		}
	}
	best, head, tail := through, Seconds(0), Seconds(0)
	for s := range f.Stages {
		best = max(best, head+work[s]+tail)
		head += f.Forward[s] + f.Output
		if f.Weights == nil {
			tail += f.Backward[s] + f.Grad
		}
	}
	return best
}
