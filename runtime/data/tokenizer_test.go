package data

import (
	"testing"

	"github.com/planc-dev/planc/runtime/tokenizer"
)

func TestEmbeddedTokenizer(t *testing.T) {
	old := job
	t.Cleanup(func() { job = old })
	_, err := NewTokenizer("ab.tokenizer.json")
	wantInputError(t, err, "-", "data: this program was built without data.tokenizer ab.tokenizer.json; build it with "+
		"planc compile")
	Embed("ab.tokenizer.json", Pack(tokenizer.Characters([]rune("ab"))))
	use, err := NewTokenizer("ab.tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := tokenizer.Decode(use, []int32{1, 0}); got != "ba" || use.Vocab() != 2 {
		t.Errorf("%q of %d tokens", got, use.Vocab())
	}
	if use, err := NewTokenizer(""); err != nil || use.Vocab() != byteVocab {
		t.Error(use, err)
	}
	Embed("gpt2", Pack([]byte("IQ== 0\n")))
	if _, err := NewTokenizer("gpt2"); err == nil {
		t.Error("a table that is not GPT-2's is accepted")
	}
}

func TestTextNeedsTokens(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(Spec{Train: one(write(t, dir, "a.txt", []byte("some text"))), SeqLen: 4, Vocab: 50257,
		Tokenizer: "gpt2"})
	wantInputError(t, err, dir, "data: DIR/a.txt is text, which must be converted to tokens of gpt2 before training: "+
		"planc data tokenize --tokenizer gpt2 DIR/a.txt -o data.bin")
}
