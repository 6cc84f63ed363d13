package feed

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// Reader reads the samples of training or of validation.
type Reader struct {
	sample func(g int64, tokens, labels []int32) (unmasked int, err error)
	types  func(g int64, types []int32) error    // nil: all types are 0, or the model reads none
	pixels func(g int64, pixels []float32) error // nil if the model reads none
	// nil if the model does not read the borders of documents
	documents func(g int64, documents []int32) error

	label          string // "" or "validation ", in front of the word sample in messages
	tokens, labels int    // upper bounds of tokens and labels; 0 if the model reads no tokens
	atOnce         int    // how many goroutines may read concurrently; 0 is 1
}

// Repeat returns a reader that reads the first n samples again and again.
func (from Reader) Repeat(n int64) Reader {
	sample, types, pixels, documents := from.sample, from.types, from.pixels, from.documents
	from.sample = func(g int64, tokens, labels []int32) (int, error) { return sample(g%n, tokens, labels) }
	if types != nil {
		from.types = func(g int64, to []int32) error { return types(g%n, to) }
	}
	if pixels != nil {
		from.pixels = func(g int64, to []float32) error { return pixels(g%n, to) }
	}
	if documents != nil {
		from.documents = func(g int64, to []int32) error { return documents(g%n, to) }
	}
	return from
}

// filesAtOnce is how many samples are read from files concurrently, so that their latencies on a disk or network
// overlap. A disk serves about as many at once. A caller's Source may rely on one at a time.
const filesAtOnce = 8

// Readers returns the readers of a source, for the inputs that the model reads.
func Readers(s Source, p *program.Program) (train, valid Reader) {
	l, tokens := &p.Batch, 0
	if slices.ContainsFunc(p.Stages, func(st program.Stage) bool { return st.Inputs.Tokens > 0 }) {
		tokens = p.Model.Vocab
	}
	train = Reader{sample: s.Train, tokens: tokens, labels: p.Model.Vocab}
	valid = Reader{sample: s.Valid, tokens: tokens, labels: p.Model.Vocab, label: "validation "}
	if _, ok := s.(*data.Set); ok {
		train.atOnce, valid.atOnce = filesAtOnce, filesAtOnce
	}
	if t, ok := s.(TypedSource); ok && l.Types {
		train.types, valid.types = t.TrainTypes, t.ValidTypes
	}
	if p, ok := s.(ImageSource); ok && l.Patch > 0 {
		train.pixels, valid.pixels = p.TrainPixels, p.ValidPixels
	}
	if d, ok := s.(DocumentSource); ok && l.Documents {
		train.documents, valid.documents = d.TrainDocuments, d.ValidDocuments
	}
	return train, valid
}

// CheckSource refuses a source that lacks what the model needs. s is nil for the job's files. predictsTokens says that
// the model predicts the next token.
func CheckSource(s Source, p *program.Program, predictsTokens bool) error {
	switch {
	case s == nil && p.Batch.Patch > 0:
		return exit.Errorf(exit.Input, "the model reads pixels, but the job's files hold tokens: pass rt.Data a "+
			"source that is also an rt.ImageSource")
	case s == nil && !predictsTokens:
		return exit.Errorf(exit.Input, "the model does not predict the next token, and the job's files have no other "+
			"labels: pass rt.Data a source with labels")
	}
	if _, ok := s.(DocumentSource); !ok && s != nil && p.Batch.Documents {
		return exit.Errorf(exit.Input, "the job sets data.document_mask, but %T is not an rt.DocumentSource: it needs "+
			"the methods TrainDocuments and ValidDocuments", s)
	}
	if p.Batch.Patch == 0 {
		return nil
	}
	if _, ok := s.(ImageSource); !ok {
		return exit.Errorf(exit.Input, "the model reads pixels, but %T is not an rt.ImageSource: it needs the methods "+
			"TrainPixels "+
			"and ValidPixels", s)
	}
	return nil
}

// check refuses a sample that the model cannot read. Kernels do not check indices into tables.
func (from *Reader) check(g int64, tokens, labels []int32, unmasked int) error {
	if unmasked < 0 || unmasked > len(labels) {
		return exit.Errorf(exit.Input, "%ssample %d: unmasked is %d; it is the number of leading positions that count "+
			"and must be "+
			"from 0 to %d", from.label, g, unmasked, len(labels))
	}
	if i, v := outside(tokens, from.tokens, 0); i >= 0 && from.tokens > 0 {
		return exit.Errorf(exit.Input, "%ssample %d: the token at position %d is %d, but the model's vocabulary is %d "+
			"(0 to %d)", from.label, g, i, v, from.tokens, from.tokens-1)
	}
	if i, v := outside(labels[:unmasked], from.labels, math.MinInt32); i >= 0 {
		return exit.Errorf(exit.Input, "%ssample %d: the label at position %d is %d, but the model has %d classes (0 "+
			"to %d; a negative one does not count)",
			from.label, g, i, v, from.labels, from.labels-1)
	}
	return nil
}

// checkDocuments refuses documents whose numbers decrease: the positions of a document must be consecutive.
func (from *Reader) checkDocuments(g int64, documents []int32) error {
	for i := 1; i < len(documents); i++ {
		if documents[i] < documents[i-1] {
			return exit.Errorf(exit.Input, "%ssample %d: position %d is of document %d, but the position before it of "+
				"document %d; the numbers must not decrease", from.label, g, i, documents[i], documents[i-1])
		}
	}
	return nil
}

// outside returns the first element of x that is not in [from, end), and its index; -1 if there is none.
func outside(x []int32, end int, from int32) (int, int32) {
	for i, v := range x {
		if v < from || int(v) >= end {
			return i, v
		}
	}
	return -1, 0
}
