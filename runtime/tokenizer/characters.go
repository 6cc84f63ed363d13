package tokenizer

import (
	"encoding/json"
	"unicode/utf8"
)

// Characters returns a tokenizer.json whose tokens are characters: the first one has the ID 0. Hugging Face's library
// reads it too.
func Characters(all []rune) []byte {
	vocab := map[string]int{}
	for id, r := range all {
		vocab[string(r)] = id
	}
	text, err := json.MarshalIndent(map[string]any{
		"version": "1.0", "added_tokens": []int{}, "normalizer": nil, "pre_tokenizer": nil, "post_processor": nil,
		"decoder": map[string]string{"type": "Fuse"},
		"model":   map[string]any{"type": "BPE", "vocab": vocab, "merges": []int{}},
	}, "", " ")
	if err != nil {
		panic(err) // there is nothing that cannot be encoded
	}
	return append(text, '\n')
}

// CodePoints is the tokenizer whose tokens are Unicode code points. It finds out which characters a text has.
type CodePoints struct{}

// Vocab implements [Tokenizer].
func (CodePoints) Vocab() int { return utf8.MaxRune + 1 }

// Encode implements [Tokenizer].
func (CodePoints) Encode(to []int32, text []byte, _ bool) ([]int32, error) {
	for at := 0; at < len(text); {
		r, n := decodeRune(text, at)
		to = append(to, r)
		at += n
	}
	return to, nil
}

// Cut implements [Tokenizer].
func (CodePoints) Cut(text []byte) int { return lastCharacter(text) }

// Append implements [Tokenizer].
func (CodePoints) Append(to []byte, token int32) []byte { return utf8.AppendRune(to, token) }

// Special implements [Tokenizer]. There are no such tokens.
func (CodePoints) Special(string) (int32, bool) { return 0, false }

// lastCharacter returns where the last character of a text begins if it may be incomplete, or else the text's end.
func lastCharacter(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return len(text)
			}
			return len(text) - n
		}
	}
	return len(text)
}
