package rank

// Block is the argument of a block's function: byte offsets in the rank's arena.
type Block struct {
	Micro, Layer int
	X, Out       int   // the block's input and output
	Slot         int   // values that forward saves for backward
	DY, DX       int   // gradients of the output and of the input
	Work, Logits int   // the workspace, and the destination of the last segment's Logits
	Params       []int // start of the run of each of the segment's Refs
	Grads        []int // start of the gradients of that run
}

// PredictsTokens reports whether the model predicts the next token.
func (p *Program) PredictsTokens() bool { return p.Segments[len(p.Segments)-1].Logits != nil }

// Samples reports whether the program can generate text: it computes logits and reads tokens.
func (p *Program) Samples() bool {
	return p.PredictsTokens() && p.Stages[0].Inputs.Tokens > 0
}
