package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Tokenizer converts text to token IDs and back. Any number of goroutines may use it.
type Tokenizer interface {
	// Vocab returns the number of token IDs: the largest ID + 1.
	Vocab() int

	// Encode appends the tokens of text. isStart is false if text continues a text that was cut before it.
	Encode(to []int32, text []byte, isStart bool) ([]int32, error)

	// Cut returns the last position at which text can be cut into two parts whose tokens are those of the whole, or 0
	// if there is none.
	Cut(text []byte) int

	// Append appends the text of a token, which may be part of a UTF-8 sequence. The text of an ID without a token is
	// U+FFFD.
	Append(to []byte, token int32) []byte

	// Special returns the ID of a token that marks something rather than being text, such as <|endoftext|>.
	Special(name string) (id int32, ok bool)
}

// Decode returns the text of tokens. Bytes that are not UTF-8 stay.
func Decode(t Tokenizer, tokens []int32) string {
	var text []byte
	for _, token := range tokens {
		text = t.Append(text, token)
	}
	if b, ok := t.(*Subword); ok && b.dropsSpace {
		return strings.TrimPrefix(string(text), " ")
	}
	return string(text)
}

// Bytes is the tokenizer whose tokens are the bytes of the text.
type Bytes struct{}

// Vocab implements [Tokenizer].
func (Bytes) Vocab() int { return 256 }

// Encode implements [Tokenizer].
func (Bytes) Encode(to []int32, text []byte, _ bool) ([]int32, error) {
	for _, c := range text {
		to = append(to, int32(c))
	}
	return to, nil
}

// Cut implements [Tokenizer].
func (Bytes) Cut(text []byte) int { return len(text) }

// Append implements [Tokenizer]. A token that is not a byte, which a model with a larger vocabulary may produce, is
// U+FFFD.
func (Bytes) Append(to []byte, token int32) []byte {
	if 0 <= token && token < 256 {
		return append(to, byte(token))
	}
	return utf8.AppendRune(to, utf8.RuneError)
}

// Special implements [Tokenizer]. There are no such tokens.
func (Bytes) Special(string) (int32, bool) { return 0, false }
