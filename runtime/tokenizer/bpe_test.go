package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// letters is a tokenizer of a, b and what merges make of them.
const letters = `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "ba": 3, "aba": 4, "abab": 5, "aa": 6},
	"merges": ["a b", "b a", ["ab", "ab"], "ab a", "a a"]}}`

// A heap merges long pieces, a scan short ones.
func TestHeapMergesAsScan(t *testing.T) {
	b, err := ParseJSON([]byte(letters))
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{bpe: b}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var text []byte
		for range scanned + random.IntN(200) {
			text = append(text, "ab"[random.IntN(2)])
		}
		w.out = nil
		w.merge(text)
		byHeap := w.out
		w.symbols = w.symbols[:0]
		w.begin(text)
		for i := range w.symbols {
			w.symbols[i].prev, w.symbols[i].next = int32(i-1), int32(i+1)
		}
		w.symbols[len(w.symbols)-1].next = -1
		for i := range w.symbols {
			w.rank(int32(i))
		}
		for w.mergeLowest() {
		}
		var byScan []int32
		for i := int32(0); i >= 0; i = w.symbols[i].next {
			byScan = append(byScan, w.symbols[i].id)
		}
		if !slices.Equal(byHeap, byScan) {
			t.Fatalf("%s: %v with a heap, %v with a scan", text, byHeap, byScan)
		}
	}
}

func TestManyGoroutinesEncode(t *testing.T) {
	b, err := ParseJSON([]byte(letters))
	if err != nil {
		t.Fatal(err)
	}
	want := encode(t, b, "abaabb")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				if got, err := b.Encode(nil, []byte("abaabb"), true); err != nil || !slices.Equal(got, want) {
					t.Error(got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestTokenizerFilesThatAreRefused(t *testing.T) {
	model := func(m string) string { return `{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []` + m + `}}` }
	part := func(key, p string) string {
		return strings.TrimSuffix(model(""), "}") + fmt.Sprintf(`, %q: %s}`, key, p)
	}
	for _, c := range []struct{ file, message string }{
		{`{}`, "it has no key model"},
		{`{"model": {"type": "WordLevel", "vocab": {"a": 0}}}`,
			"not supported yet: its model is WordLevel; it must be BPE or WordPiece"},
		{`{"model": {"type": "Unigram", "vocab": [["a", -1.5]]}}`,
			"not supported yet: its model is Unigram; it must be BPE or WordPiece"},
		{`{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`, "model.unk_token is missing"},
		{`{"model": {"type": "BPE", "vocab": {}, "merges": []}}`, "its vocabulary is empty"},
		{`{"model": {"type": "BPE", "vocab": {"a": 99999999}, "merges": []}}`, `the token "a" has the ID 99999999`},
		{model(`, "dropout": 0.1`), "not supported yet: model.dropout"},
		{model(`, "end_of_word_suffix": "</w>"`), "not supported yet: model.end_of_word_suffix"},
		{model(`, "unk_token": "?"`), "model.unk_token is ?, which is not in the vocabulary"},
		{model(`, "byte_fallback": true`), "it has no token for the byte 0x00"},
		{part("normalizer", `{"type": "Lowercase"}`), "not supported yet: its normalizer is Lowercase"},
		{part("pre_tokenizer", `{"type": "UnicodeScripts"}`), "not supported yet: its pre-tokenizer is UnicodeScripts"},
		{part("pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Contiguous"}`),
			"not supported yet: its pre-tokenizer splits text with behavior Contiguous, invert false"},
		{part("added_tokens", `[{"id": 1, "content": "x", "single_word": true}]`),
			`not supported yet: the added token "x" has single_word`},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}`,
			`merge 0 is of "a" and "b", which are not both in the vocabulary together with their result`},
	} {
		if _, err := ParseJSON([]byte(c.file)); err == nil || err.Error() != c.message {
			t.Errorf("%s:\n%v, not\n%s", c.file, err, c.message)
		}
	}
}

func TestRankTableMustBeTheEncodings(t *testing.T) {
	_, err := ParseRanks(Encodings[0], []byte("IQ== 0\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "the rank table of r50k_base has the SHA-256 ") {
		t.Error(err)
	}
}

func TestCharactersWithoutTokenAreReported(t *testing.T) {
	b, err := ParseJSON([]byte(letters))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Dropped(); ok || len(encode(t, b, "ab")) != 1 {
		t.Error("nothing has been dropped yet")
	}
	if ids := encode(t, b, "aébç"); !slices.Equal(ids, []int32{2}) {
		t.Errorf("%v", ids)
	}
	if c, ok := b.Dropped(); !ok || c != 'é' {
		t.Errorf("%q", c)
	}
}
