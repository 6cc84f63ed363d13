package tokenizer

import "testing"

// The decoder puts a space before each word, and none before punctuation and contractions, as Hugging Face's does.
func TestWordPiecesAreDecoded(t *testing.T) {
	composing(t)
	for _, k := range readReference(t).Tokenizers {
		if k.Name != "bert" {
			continue
		}
		b, err := ParseJSON(k.File)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{"The test, naïve.": "the test, naive.", "a  b\nc.": "a b c.",
			"[CLS] a [SEP]": "[CLS] a [SEP]"} {
			if got := Decode(b, encode(t, b, text)); got != want {
				t.Errorf("%q decodes to %q, want %q", text, got, want)
			}
		}
		return
	}
	t.Fatal("there is no tokenizer of BERT")
}

// Training binaries have no normalization, and refuse text that may need it.
func TestAccentsAreRefusedWithoutNormalization(t *testing.T) {
	for _, k := range readReference(t).Tokenizers {
		if k.Name != "bert" {
			continue
		}
		b, err := ParseJSON(k.File)
		if err != nil {
			t.Fatal(err)
		}
		const want = `not supported yet: the tokenizer normalizes text (NFD), which may change 'é' (U+00E9)`
		if _, err := b.Encode(nil, []byte("caf\u00e9"), true); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if ids := encode(t, b, "The cafe"); len(ids) == 0 {
			t.Error("ASCII text has no tokens")
		}
	}
}
