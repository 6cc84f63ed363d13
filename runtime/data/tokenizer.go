package data

import (
	"strings"
	"unicode/utf8"
)

// Bytes is the tokenizer whose tokens are the bytes of the text.
type Bytes struct{}

// NewTokenizer returns the tokenizer of a name; "" is bytes. Others are not supported yet.
func NewTokenizer(name string) (Bytes, error) {
	switch name {
	case "", "bytes":
		return Bytes{}, nil
	case "gpt2", "cl100k", "o200k":
		return Bytes{}, inputf("not supported yet: tokenizer %s; use %s", name, worksToday)
	}
	return Bytes{}, inputf("not supported yet: tokenizer files (%s); use %s", name, worksToday)
}

const worksToday = "bytes, or token files (.bin) made by nanoGPT or llm.c"

// Vocab returns the number of tokens.
func (Bytes) Vocab() int { return 256 }

// Encode returns the tokens of a text.
func (Bytes) Encode(text string) []int32 {
	tokens := make([]int32, len(text))
	for i := range len(text) {
		tokens[i] = int32(text[i])
	}
	return tokens
}

// Decode returns the text of tokens. A token that is not a byte, which a model with a larger vocabulary may produce,
// becomes U+FFFD. Bytes that are not UTF-8 stay.
func (Bytes) Decode(tokens []int32) string {
	var b strings.Builder
	for _, t := range tokens {
		if 0 <= t && t < 256 {
			b.WriteByte(byte(t))
		} else {
			b.WriteRune(utf8.RuneError)
		}
	}
	return b.String()
}
