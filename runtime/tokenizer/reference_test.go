package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// reference is golden/reference/testdata/tokenizers.json: tokenizers, and what Hugging Face's library makes of texts.
type reference struct {
	Tokenizers []struct {
		Name  string
		File  json.RawMessage
		Cases []struct {
			Text string
			IDs  []int32
		}
	}
}

func readReference(t *testing.T) (r reference) {
	t.Helper()
	text, err := os.ReadFile("../../golden/reference/testdata/tokenizers.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// composing sets NFC and NFD for a test.
func composing(t *testing.T) {
	NFC, NFD = norm.NFC.Bytes, norm.NFD.Bytes
	t.Cleanup(func() { NFC, NFD = nil, nil })
}

func encode(t *testing.T, b Tokenizer, text string) []int32 {
	t.Helper()
	ids, err := b.Encode(nil, []byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestTokensAreThoseOfHuggingFace(t *testing.T) {
	composing(t)
	for _, k := range readReference(t).Tokenizers {
		b, err := ParseJSON(k.File)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		if len(k.Cases) < 50 {
			t.Errorf("%s has %d cases", k.Name, len(k.Cases))
		}
		for _, c := range k.Cases {
			if got := encode(t, b, c.Text); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q is %v; Hugging Face has %v", k.Name, c.Text, got, c.IDs)
			}
		}
	}
}

// The cases are texts of several languages with many kinds of spaces.
func TestTokensDoNotDependOnCuts(t *testing.T) {
	composing(t)
	all := readReference(t).Tokenizers
	var text []byte
	for _, c := range all[0].Cases {
		text = append(text, c.Text...)
	}
	const cuttable = "gpt2 roberta llama3 qwen tekken deepseek starcoder llama2 mistral bert bertcased bertlower"
	for _, k := range all {
		b, err := ParseJSON(k.File)
		if err != nil {
			t.Fatal(err)
		}
		want := encode(t, b, string(text))
		if wants := strings.Contains(cuttable, k.Name); wants != (b.Cut(text) > 0) {
			t.Errorf("%s: texts can be cut: %t", k.Name, !wants)
		}
		for at := b.Cut(text); at > 0; at = b.Cut(text[:at]) {
			got, _ := b.Encode(nil, text[:at], true)
			got, _ = b.Encode(got, text[at:], false)
			if !slices.Equal(got, want) {
				t.Errorf("%s: cutting %q at byte %d changes tokens", k.Name, text[max(0, at-20):at+20], at)
			}
		}
	}
}

// Byte-level tokenizers keep each byte, and those with byte_fallback each character, unless the text begins with a
// space, has the mark for spaces, or has an added token.
func TestDecodingInvertsEncoding(t *testing.T) {
	const byteLevel, fallback = "gpt2 llama3 tekken deepseek starcoder previous next", "llama2 mistral gemma"
	compared := 0
	for _, k := range readReference(t).Tokenizers {
		b, err := ParseJSON(k.File)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range k.Cases {
			isMarked := strings.HasPrefix(c.Text, " ") || strings.Contains(c.Text, "▁") ||
				strings.Contains(c.Text, "s>")
			if !strings.Contains(byteLevel, k.Name) && (!strings.Contains(fallback, k.Name) || isMarked) {
				continue
			}
			compared++
			if got := Decode(b, c.IDs); got != c.Text {
				t.Errorf("%s: %q decodes to %q", k.Name, c.Text, got)
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d texts were compared", compared)
	}
}

func TestNormalizationIsRefusedWhereItMayMatter(t *testing.T) {
	for r := rune(0); r <= 0x10FFFF; r++ {
		p := norm.NFC.PropertiesString(string(r))
		isInert := p.BoundaryBefore() && p.CCC() == 0 && norm.NFC.IsNormalString(string(r))
		if !mayCompose(r) && !isInert {
			t.Errorf("%U may be changed by normalization", r)
		}
	}
	if _, err := compose([]byte("e\u0301"), textStart); err == nil || !strings.Contains(err.Error(), "U+0301") {
		t.Error(err)
	}
}
