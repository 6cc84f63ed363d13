package costmodel

// Floor is what a lower bound of a pipelined step is made of.
type Floor struct {
	Micro             int
	Forward, Backward []Seconds // of each chunk's pass over a micro-batch, in the model's order, at least
	Weights           []Seconds // of a split backward's second part; nil if it is not split
	Output, Grad      Seconds   // of a message
	StageOf           []int     // of each chunk
	Stages            int
}

// Seconds is at most what any schedule takes for the passes. A stage cannot begin before the first micro-batch has come
// through the stages before it, it does all of its passes one after the other, and after its last backward pass, which
// is of its first chunk or of one after that, gradients go back through the stages before it. A stage's first chunk is
// that of its own number. Where backward is split, what a stage does last may be a pass that nobody waits for.
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
