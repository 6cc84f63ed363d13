package data

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// An epoch of separate documents has each label of each document once, and no sample is of two documents.
func TestSeparateDocuments(t *testing.T) {
	dir := t.TempDir()
	const seqLen = 8
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		var lengths, tokens []int
		want := map[string]int{}
		for document := range 1 + r.IntN(300) {
			n := r.IntN(40)
			if document == 0 {
				n = 2
			}
			lengths = append(lengths, n)
			for i := range n {
				tokens = append(tokens, (31*document+i)%1000)
			}
			last := tokens[len(tokens)-n:]
			for at := 0; at < n-1; at += seqLen {
				end := min(at+seqLen, n-1)
				want[fmt.Sprint(last[at:end], last[at+1:end+1])]++
			}
		}
		write(t, dir, "m.idx", indexFile(8, 2, lengths...))
		s := open(t, Spec{Train: one(write(t, dir, "m.bin", u16(tokens...))), SeqLen: seqLen, Vocab: 1000,
			Documents: Separate, Seed: r.Uint64()})
		for g := range s.TrainSamples() {
			x := get(t, s.Train, g, seqLen)
			key := fmt.Sprint(x.tokens, x.labels)
			if want[key] == 0 {
				t.Fatalf("sample %d is %s, which no document has, or not that often", g, key)
			}
			want[key]--
		}
		for key, n := range want {
			if n != 0 {
				t.Errorf("an epoch lacks %s", key)
			}
		}
	}
}

// The last samples are held out, and the lengths of documents are part of the ID.
func TestSeparateDocumentsHeldOut(t *testing.T) {
	dir := t.TempDir()
	bin := write(t, dir, "m.bin", u16(count(40)...))
	write(t, dir, "m.idx", indexFile(8, 2, 10, 10, 10, 10))
	spec := Spec{Train: one(bin), SeqLen: 8, Vocab: 99, Documents: Separate, ValidFraction: 0.25}
	s := open(t, spec)
	if s.TrainSamples() != 6 || s.ValidSamples() != 2 {
		t.Fatalf("%d samples to train on and %d held out", s.TrainSamples(), s.ValidSamples())
	}
	if x := get(t, s.Valid, 1, 8); len(x.tokens) != 1 || x.tokens[0] != 38 || x.labels[0] != 39 {
		t.Errorf("the second held-out sample is %v", x)
	}
	want := "1 file, 40 tokens: 6 samples of 8 an epoch, of one document each (44 % padding), 2 to validate"
	if s.String() != want {
		t.Errorf("%s, want %s", s, want)
	}
	first := s.ID()
	write(t, dir, "m.idx", indexFile(8, 2, 10, 11, 9, 10))
	if open(t, spec).ID() == first {
		t.Error("other lengths of documents leave the ID as it is")
	}
}

func TestSeparateDocumentsAreRefused(t *testing.T) {
	dir := t.TempDir()
	spec := func(path string) Spec {
		return Spec{Train: one(path), SeqLen: 8, Vocab: 256, Documents: Separate}
	}
	_, err := Open(spec(write(t, dir, "a.txt", []byte(strings.Repeat("text ", 20)))))
	wantInputError(t, err, dir, "data: DIR/a.txt does not say where documents end, so data.documents cannot be "+
		"separate; use a Megatron data set, as planc data tokenize --format megatron writes it")
	write(t, dir, "m.idx", indexFile(8, 2, 1, 1, 1))
	bin := write(t, dir, "m.bin", u16(1, 2, 3))
	_, err = Open(spec(bin))
	wantInputError(t, err, dir, "data: DIR/m.bin has no document of at least 2 tokens")
	index := indexFile(8, 2, 4, 4, 4)
	index[indexHeader+4] = 3 // the second length; positions of all three are checked only if there are few
	write(t, dir, "m.idx", index)
	write(t, dir, "m.bin", u16(count(12)...))
	_, err = Open(spec(bin))
	wantInputError(t, err, dir, "data: DIR/m.bin cannot be read as consecutive tokens: the index m.idx says that "+
		"sequence 2 begins at byte 16, but the one before it ends at 14")
	random := spec(bin)
	random.Sampling = Random
	_, err = Open(random)
	wantInputError(t, err, dir, "data: data.sampling is random, whose windows begin anywhere, and data.documents is "+
		"separate, whose windows begin with their document: use data.sampling shuffle, or data.documents packed")
}

// With a mask, windows are packed, the label of a document's last token does not count, and the positions of each
// document have its number.
func TestMaskedDocuments(t *testing.T) {
	dir := t.TempDir()
	const seqLen = 8
	r := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		var lengths, tokens, documentOf []int
		for document := range 70 + r.IntN(130) { // more than one block of them
			n := r.IntN(20)
			lengths = append(lengths, n)
			for range n {
				tokens, documentOf = append(tokens, len(tokens)), append(documentOf, document)
			}
		}
		write(t, dir, "m.idx", indexFile(8, 2, lengths...))
		spec := Spec{Train: one(write(t, dir, "m.bin", u16(tokens...))), SeqLen: seqLen, Vocab: 1 << 16,
			DocumentMask: true, Seed: r.Uint64(), ValidFraction: 0.2, Sampling: []string{Shuffle, Random}[r.IntN(2)]}
		s := open(t, spec)
		for g := range s.TrainSamples() + s.ValidSamples() {
			read, number := s.Train, s.TrainDocuments
			if g >= s.TrainSamples() {
				g, read, number = g-s.TrainSamples(), s.Valid, s.ValidDocuments
			}
			x, numbers := get(t, read, g, seqLen), make([]int32, seqLen)
			if err := number(g, numbers); err != nil {
				t.Fatal(err)
			}
			for i, token := range x.tokens {
				want := int(token) + 1
				if documentOf[token] != documentOf[token+1] {
					want = -1
				}
				if int(x.labels[i]) != want || int(numbers[i]) != documentOf[token] {
					t.Fatalf("token %d has label %d, want %d, and document %d, want %d", token, x.labels[i], want,
						numbers[i], documentOf[token])
				}
			}
			for _, padding := range numbers[len(x.tokens):] {
				if padding != numbers[len(x.tokens)-1]+1 {
					t.Fatalf("padding is of document %d", padding)
				}
			}
		}
		plain := spec
		plain.DocumentMask = false
		if open(t, plain).ID() == s.ID() {
			t.Error("the mask leaves the ID as it is")
		}
	}
	_, err := Open(Spec{Train: one(write(t, dir, "a.txt", []byte(strings.Repeat("text ", 20)))), SeqLen: 8, Vocab: 256,
		DocumentMask: true})
	wantInputError(t, err, dir, "data: DIR/a.txt does not say where documents end, so data.document_mask cannot be "+
		"true; use a Megatron data set, as planc data tokenize --format megatron writes it")
}

// Documents of a file with a mask stay apart in separate samples too: padding is a document of its own.
func TestDocumentsOfSeparateSamples(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "m.idx", indexFile(8, 2, 5, 4))
	s := open(t, Spec{Train: one(write(t, dir, "m.bin", u16(count(9)...))), SeqLen: 8, Vocab: 9, Documents: Separate,
		DocumentMask: true})
	for g := range s.TrainSamples() {
		x, numbers := get(t, s.Train, g, 8), make([]int32, 8)
		if err := s.TrainDocuments(g, numbers); err != nil {
			t.Fatal(err)
		}
		for i, number := range numbers {
			if want := i >= len(x.tokens); (number == 1) != want || number > 1 {
				t.Errorf("sample %d: position %d is of document %d", g, i, number)
			}
		}
	}
}
