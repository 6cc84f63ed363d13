package ir

import "slices"

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

// The borders of the documents of a batch, [batch, seq] of I32. They are no inputs of functions: ops whose attribute
// documents is set read them, as dropout reads the seed. No axis splits their dim seq, because a rank needs the borders
// of all positions that its queries have, whatever layout these have.
const (
	Starts = "starts" // the first position of the position's document
	Ends   = "ends"   // the position after the last one of its document; only bidirectional models have it
)

// lineBytes is the size of a cache line, to which batch inputs are aligned.
const lineBytes = 64

// BatchInput is one of these inputs and the location of all micro-batches of one rank, in bytes from the start of the
// batch region.
type BatchInput struct {
	Name         string
	Type         Type
	Offset, Size int
}

// BatchInputs returns what the data loader fills: the batch inputs of the model, and the borders of documents if an op
// reads them.
func (p *Program) BatchInputs() []BatchInput {
	var in []BatchInput
	at := 0
	add := func(name string, t Type) {
		size := p.Plan.MicroBatches * t.LocalBytes(p.Mesh)
		in = append(in, BatchInput{Name: name, Type: t, Offset: at, Size: size})
		at += (size + lineBytes - 1) / lineBytes * lineBytes
	}
	for _, name := range BatchNames {
		if t, ok := p.Model.inputType(name); ok {
			add(name, t)
		}
	}
	for _, name := range p.Model.borders() {
		add(name, p.Model.BordersType())
	}
	return in
}

// BordersType returns the type of the borders of documents.
func (m *Model) BordersType() Type {
	labels, _ := m.inputType(Labels)
	t := labels.Clone()
	for i := range t.Dims {
		if t.Dims[i].Dim == Seq {
			t.Dims[i].Axes = nil
		}
	}
	return t
}

// borders returns which borders of documents the model's ops read.
func (m *Model) borders() []string {
	for _, s := range m.Segments {
		for _, n := range s.Forward.Nodes {
			if n.Op != OpAttention || !n.Attr.Documents {
				continue
			}
			if n.Attr.Causal {
				return []string{Starts}
			}
			return []string{Starts, Ends}
		}
	}
	return nil
}

// MasksDocuments reports whether the model's attention does not cross the borders of documents.
func (m *Model) MasksDocuments() bool { return len(m.borders()) > 0 }

// inputType returns the type of the first input of that name.
func (m *Model) inputType(name string) (Type, bool) {
	for _, s := range m.Segments {
		at := slices.IndexFunc(s.Forward.Inputs, func(v *Value) bool { return v.Name == name && v.Kind == Input })
		if at >= 0 {
			return s.Forward.Inputs[at].Type, true
		}
	}
	return Type{}, false
}
