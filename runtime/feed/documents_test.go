package feed

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// plainSource has samples, and does not say of which documents they are.
type plainSource struct{}

func (plainSource) Train(_ int64, tokens, labels []int32) (int, error) {
	for i := range tokens {
		tokens[i], labels[i] = int32(i), int32(i)
	}
	return len(tokens), nil
}
func (s plainSource) Valid(g int64, tokens, labels []int32) (int, error) {
	return s.Train(g, tokens, labels)
}
func (plainSource) TrainSamples() int64 { return 1 }
func (plainSource) ValidSamples() int64 { return 1 }

// documentSource also has the numbers of the documents.
type documentSource struct {
	plainSource
	numbers []int32
}

func (s documentSource) TrainDocuments(_ int64, to []int32) error { copy(to, s.numbers); return nil }
func (s documentSource) ValidDocuments(_ int64, to []int32) error { copy(to, s.numbers); return nil }

// A job with a document mask needs a source that numbers its documents, and the numbers must not decrease.
func TestDocumentsOfASource(t *testing.T) {
	p := &program.Program{Model: program.Model{Vocab: 9},
		Batch: program.BatchLayout{SeqLen: 4, Documents: true}}
	err := CheckSource(plainSource{}, p, true)
	if err == nil || !strings.Contains(err.Error(), "not an rt.DocumentSource") {
		t.Errorf("a source without documents: %v", err)
	}
	for _, c := range []struct{ numbers, want []int32 }{{[]int32{3, 3, 7, 8}, []int32{3, 3, 7, 8}},
		{[]int32{3, 3, 2, 8}, nil}} {
		s := documentSource{numbers: c.numbers}
		if err := CheckSource(s, p, true); err != nil {
			t.Fatal(err)
		}
		train, valid := Readers(s, p)
		for name, from := range map[string]Reader{"": train, "validation ": valid} {
			b := NewBatch(2, &p.Batch)
			b.Read(from.Repeat(1), 0, 1, 1)
			if c.want == nil {
				const want = "sample 0: position 2 is of document 2, but the position before it of document 3; the " +
					"numbers must not decrease"
				if b.Err == nil || !strings.Contains(b.Err.Error(), name+want) {
					t.Errorf("%v: error %v", c.numbers, b.Err)
				}
				continue
			}
			for i, want := range append(c.want, 0, 0, 0, 0) { // the second row is past the end
				if b.Err != nil || b.Documents[i] != want {
					t.Fatalf("%v, documents %v, want %v", b.Err, b.Documents, c.want)
				}
			}
		}
	}
}
