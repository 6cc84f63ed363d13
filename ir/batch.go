package ir

// Inputs of segment functions that the data loader fills. They are [batch, seq] of I32, except mask, which is a
// statistic, and pixels, which is [batch, seq, patch] of the program's compute type. A model has the inputs that its
// functions name.
const (
	Tokens = "tokens" // token ids
	Labels = "labels" // the next token of each token, or its class
	Mask   = "mask"   // 1 if the loss counts the position, else 0
	Types  = "types"  // segment of the text to which a token belongs
	Pixels = "pixels" // an image, with one patch per position
)

// BatchNames lists these inputs in their order in the arena's batch region.
var BatchNames = []string{Tokens, Labels, Mask, Types, Pixels}

// lineBytes is the size of a cache line, to which batch inputs are aligned.
const lineBytes = 64

// BatchInput is one of these inputs and the location of all micro-batches of one rank, in bytes from the start of the
// batch region.
type BatchInput struct {
	Name         string
	Type         Type
	Offset, Size int
}

// BatchInputs returns the batch inputs of the model.
func (p *Program) BatchInputs() []BatchInput {
	var in []BatchInput
	at := 0
	for _, name := range BatchNames {
		t, ok := p.Model.inputType(name)
		if !ok {
			continue
		}
		size := p.Plan.MicroBatches * t.LocalBytes(p.Mesh)
		in = append(in, BatchInput{Name: name, Type: t, Offset: at, Size: size})
		at += (size + lineBytes - 1) / lineBytes * lineBytes
	}
	return in
}

// inputType returns the type of the first input of that name.
func (m *Model) inputType(name string) (Type, bool) {
	for _, s := range m.Segments {
		for _, v := range s.Forward.Inputs {
			if v.Name == name && v.Kind == Input {
				return v.Type, true
			}
		}
	}
	return Type{}, false
}
