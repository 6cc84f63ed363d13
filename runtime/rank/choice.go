package rank

// Choice is one token's choice of experts in a layer, identified by numbers that are the same on every plan.
type Choice struct {
	Step           int // optimizer step; for an evaluation after n steps it is -1-n
	Segment, Layer int
	Sample         int // index in the step's global batch, or in the validation data
	Position       int
	Experts        []int32 // best first
}
