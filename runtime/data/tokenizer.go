package data

import (
	"strings"
	"unicode/utf8"
)

// Bytes is the tokenizer whose tokens are the bytes of the text.
type Bytes struct{}

// NewTokenizer is the tokenizer of that name; "" is bytes. All others are refused for now.
func NewTokenizer(name string) (Bytes, error) {
	switch name {
	case "", "bytes":
		return Bytes{}, nil
	case "gpt2", "cl100k", "o200k":
		return Bytes{}, inputf("tokenizer %s is not there yet; what works today: %s", name, worksToday)
	}
	return Bytes{}, inputf("tokenizer files (%s) are not there yet; what works today: %s", name, worksToday)
}

const worksToday = "bytes, or token files (.bin) made by nanoGPT or llm.c"

// Vocab is the number of tokens.
func (Bytes) Vocab() int { return 256 }

// Encode is the tokens of a text.
func (Bytes) Encode(text string) []int32 {
	tokens := make([]int32, len(text))
	for i := range len(text) {
		tokens[i] = int32(text[i])
	}
	return tokens
}

// Decode is the text of tokens. A token that is no byte, which a model of a larger vocabulary may
// produce, becomes U+FFFD. Bytes that are not UTF-8 are kept.
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
