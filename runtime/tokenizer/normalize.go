package tokenizer

import (
	"bytes"
	"fmt"
	"unicode"
)

// normalizer changes text before it is split.
type normalizer func(text []byte, at place) ([]byte, error)

// place is where a part of a text begins.
type place int

const (
	continued  place = iota // where a text was cut
	afterToken              // after an added token
	textStart
)

// prepend puts a prefix in front of texts, and of what follows an added token.
func prepend(prefix string) normalizer {
	return func(text []byte, at place) ([]byte, error) {
		if at == continued || len(text) == 0 {
			return text, nil
		}
		return append([]byte(prefix), text...), nil
	}
}

func replace(old, by string) normalizer {
	return func(text []byte, _ place) ([]byte, error) {
		return bytes.ReplaceAll(text, []byte(old), []byte(by)), nil
	}
}

// markSpaces replaces spaces by a mark, and puts one in front of parts that begin at from or later in the order of
// places and do not begin with one.
func markSpaces(mark string, from place) normalizer {
	return func(text []byte, at place) ([]byte, error) {
		text = bytes.ReplaceAll(text, []byte(" "), []byte(mark))
		if at >= from && len(text) > 0 && !bytes.HasPrefix(text, []byte(mark)) {
			text = append([]byte(mark), text...)
		}
		return text, nil
	}
}

// spaceFirst puts a space in front of texts that do not begin with one, and of what follows an added token.
func spaceFirst(text []byte, at place) ([]byte, error) {
	if at == continued || len(text) == 0 || text[0] == ' ' {
		return text, nil
	}
	return append([]byte{' '}, text...), nil
}

// NFC returns the Unicode normalization form C of a text. It is nil in training binaries, which consist of the standard
// library only and refuse text that may need it.
var NFC func(text []byte) []byte

// NormalizationError reports text that must be normalized, which training binaries cannot do.
type NormalizationError struct {
	Form string // NFC or NFD
	Rune rune
}

func (e *NormalizationError) Error() string {
	return fmt.Sprintf("not supported yet: the tokenizer normalizes text (%s), which may change %q (%U)", e.Form,
		e.Rune, e.Rune)
}

// compose normalizes text to form C.
func compose(text []byte, _ place) ([]byte, error) {
	if NFC != nil {
		return NFC(text), nil
	}
	for at := 0; at < len(text); {
		r, n := decodeRune(text, at)
		if mayCompose(r) {
			return nil, &NormalizationError{"NFC", r}
		}
		at += n
	}
	return text, nil
}

// composable are ranges with all runes, apart from marks, that may be part of text which is not in form C: characters
// that stand for others, and Hangul letters that form syllables.
var composable = []runeRange{{0x340, 0x387}, {0x958, 0x95F}, {0x9DC, 0x9DF}, {0xA33, 0xA36}, {0xA59, 0xA5E},
	{0xB5C, 0xB5D}, {0xF43, 0xF69}, {0x1100, 0x11FF}, {0x1F70, 0x1FFD}, {0x2000, 0x2001}, {0x2126, 0x212B},
	{0x2329, 0x232A}, {0x2ADC, 0x2ADC}, {0xF900, 0xFAFF}, {0xFB1D, 0xFB4E}, {0x1D15E, 0x1D1C0}, {0x2F800, 0x2FA1D}}

// mayCompose reports whether normalization may change a rune, or the runes around it.
func mayCompose(r rune) bool {
	if r < 0x300 {
		return false
	}
	for _, x := range composable {
		if x.first <= r && r <= x.last {
			return true
		}
	}
	return unicode.Is(unicode.M, r)
}
