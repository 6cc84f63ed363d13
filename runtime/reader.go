package runtime

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/runtime/data"
)

// reader gives the samples of training, or those of validation.
type reader struct {
	sample func(g int64, tokens, labels []int32) (unmasked int, err error)
	types  func(g int64, types []int32) error    // nil: all are 0, or the model reads none
	pixels func(g int64, pixels []float32) error // nil where the model reads none

	label          string // "" or "validation ", before the word sample
	tokens, labels int    // what they must be below; 0 where the model reads no tokens
	atOnce         int    // how many goroutines may read at the same time; 0 is 1
}

// filesAtOnce is how many samples of files are read at the same time, so that the latency of a disk or a network counts
// once for all of them. A disk serves about as many at once; a Source of the caller's may count on one at a time.
const filesAtOnce = 8

// readers are those of a source, as far as the model reads what it gives.
func readers(s Source, p *Program) (train, valid reader) {
	l, tokens := &p.Batch, 0
	if slices.ContainsFunc(p.Stages, func(st Stage) bool { return st.Inputs.Tokens > 0 }) {
		tokens = p.Model.Vocab
	}
	train = reader{sample: s.Train, tokens: tokens, labels: p.Model.Vocab}
	valid = reader{sample: s.Valid, tokens: tokens, labels: p.Model.Vocab, label: "validation "}
	if _, ok := s.(*data.Set); ok {
		train.atOnce, valid.atOnce = filesAtOnce, filesAtOnce
	}
	if t, ok := s.(TypedSource); ok && l.Types {
		train.types, valid.types = t.TrainTypes, t.ValidTypes
	}
	if p, ok := s.(ImageSource); ok && l.Patch > 0 {
		train.pixels, valid.pixels = p.TrainPixels, p.ValidPixels
	}
	return train, valid
}

// checkSource refuses a source, nil for the job's files, that lacks what the model cannot do without.
func checkSource(s Source, p *Program) error {
	switch {
	case s == nil && p.Batch.Patch > 0:
		return exitf(ExitInput, "the model reads pixels, and the job's files hold tokens: give rt.Data a source that "+
			"is an rt.ImageSource too")
	case s == nil && p.Segments[len(p.Segments)-1].Logits == nil:
		return exitf(ExitInput, "the model does not learn what comes next, which is all that the job's files say: "+
			"give rt.Data a source of its labels")
	case p.Batch.Patch == 0:
		return nil
	}
	if _, ok := s.(ImageSource); !ok {
		return exitf(ExitInput, "the model reads pixels, and %T is no rt.ImageSource: it wants methods TrainPixels "+
			"and ValidPixels", s)
	}
	return nil
}

// check refuses a sample that the model cannot read: an index outside of its tables would be read all the same.
func (from *reader) check(g int64, tokens, labels []int32, unmasked int) error {
	if unmasked < 0 || unmasked > len(labels) {
		return exitf(ExitInput, "%ssample %d: unmasked is %d; it is how many positions count, from the first on: "+
			"0 to %d", from.label, g, unmasked, len(labels))
	}
	if i, v := outside(tokens, from.tokens, 0); i >= 0 && from.tokens > 0 {
		return exitf(ExitInput, "%ssample %d: the token at position %d is %d, and the model's vocabulary is %d "+
			"(0 to %d)", from.label, g, i, v, from.tokens, from.tokens-1)
	}
	if i, v := outside(labels[:unmasked], from.labels, math.MinInt32); i >= 0 {
		return exitf(ExitInput, "%ssample %d: the label at position %d is %d, and the model tells %d apart (0 to %d; "+
			"a negative one does not count)",
			from.label, g, i, v, from.labels, from.labels-1)
	}
	return nil
}

// outside is the first of x that is below from or not below end, -1 if there is none.
func outside(x []int32, end int, from int32) (int, int32) {
	for i, v := range x {
		if v < from || int(v) >= end {
			return i, v
		}
	}
	return -1, 0
}
