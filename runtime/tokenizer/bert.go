package tokenizer

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// NFD returns the Unicode normalization form D of a text. It is nil in training binaries, as [NFC] is.
var NFD func(text []byte) []byte

// Hugging Face's library classifies characters for BERT by tables of Unicode 8. The characters below are of the
// category in Go's tables, which are of Unicode 15, and not in those, or the other way round. They are what its version
// 0.23.3 does with each code point.
var (
	notControl = []runeRange{{0x890, 0x891}, {0x8E2, 0x8E2}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}}

	otherPunctuation = []runeRange{{0x166D, 0x166D}, {0x111C9, 0x111C9}}
	noPunctuation    = []runeRange{{0x61D, 0x61D}, {0x9FD, 0x9FD}, {0xA76, 0xA76}, {0xC77, 0xC77}, {0xC84, 0xC84},
		{0x1B7D, 0x1B7E}, {0x2E43, 0x2E4F}, {0x2E52, 0x2E5D}, {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59},
		{0x10F86, 0x10F89}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C},
		{0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
		{0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71},
		{0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A},
		{0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}}

	otherAccents = []runeRange{{0x1734, 0x1734}}
	noAccents    = []runeRange{{0x7FD, 0x7FD}, {0x898, 0x89F}, {0x8CA, 0x8E1}, {0x9FE, 0x9FE}, {0xAFA, 0xAFF},
		{0xB55, 0xB55}, {0xC04, 0xC04}, {0xC3C, 0xC3C}, {0xD00, 0xD00}, {0xD3B, 0xD3C}, {0xD81, 0xD81},
		{0xEBA, 0xEBA}, {0xECE, 0xECE}, {0x180F, 0x180F}, {0x1885, 0x1886}, {0x1ABF, 0x1ACE}, {0x1DF6, 0x1DFB},
		{0xA82C, 0xA82C}, {0xA8C5, 0xA8C5}, {0xA8FF, 0xA8FF}, {0xA9BD, 0xA9BD}, {0x10D24, 0x10D27},
		{0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
		{0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x1123E},
		{0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x11438, 0x1143F}, {0x11442, 0x11444}, {0x11446, 0x11446},
		{0x1145E, 0x1145E}, {0x1182F, 0x11837}, {0x11839, 0x1183A}, {0x1193B, 0x1193C}, {0x1193E, 0x1193E},
		{0x11943, 0x11943}, {0x119D4, 0x119D7}, {0x119DA, 0x119DB}, {0x119E0, 0x119E0}, {0x11A01, 0x11A0A},
		{0x11A33, 0x11A38}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A56}, {0x11A59, 0x11A5B},
		{0x11A8A, 0x11A96}, {0x11A98, 0x11A99}, {0x11C30, 0x11C36}, {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F},
		{0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3}, {0x11CB5, 0x11CB6}, {0x11D31, 0x11D36},
		{0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47}, {0x11D90, 0x11D91},
		{0x11D95, 0x11D95}, {0x11D97, 0x11D97}, {0x11EF3, 0x11EF4}, {0x11F00, 0x11F01}, {0x11F36, 0x11F3A},
		{0x11F40, 0x11F40}, {0x11F42, 0x11F42}, {0x13440, 0x13440}, {0x13447, 0x13455}, {0x16F4F, 0x16F4F},
		{0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46}, {0x1E000, 0x1E006}, {0x1E008, 0x1E018},
		{0x1E01B, 0x1E021}, {0x1E023, 0x1E024}, {0x1E026, 0x1E02A}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
		{0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E944, 0x1E94A}}

	chinese = []runeRange{{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0x20000, 0x2A6DF},
		{0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}}
)

// isIn reports whether a rune is in one of some ranges, which are in order.
func isIn(r rune, ranges []runeRange) bool {
	i, ok := slices.BinarySearchFunc(ranges, r, func(x runeRange, r rune) int { return int(x.first - r) })
	return ok || i > 0 && r <= ranges[i-1].last
}

// isBertPunctuation reports whether a character is a piece of its own.
func isBertPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return unicode.IsPunct(r) || unicode.IsSymbol(r)
	}
	return unicode.IsPunct(r) && !isIn(r, noPunctuation) || isIn(r, otherPunctuation)
}

// bertPieces emits words between spaces, and punctuation.
func bertPieces(text []byte, emit func([]byte)) {
	for _, word := range bytes.FieldsFunc(text, unicode.IsSpace) {
		from := 0
		for at := 0; at < len(word); {
			r, n := utf8.DecodeRune(word[at:])
			if isBertPunctuation(r) {
				if from < at {
					emit(word[from:at])
				}
				emit(word[at : at+n])
				from = at + n
			}
			at += n
		}
		if from < len(word) {
			emit(word[from:])
		}
	}
}

// bertNormalizers returns the steps of a BertNormalizer.
func bertNormalizers(p *jsonBert) (steps []normalizer) {
	if p.CleanText {
		steps = append(steps, eachRune(cleanRune))
	}
	if p.Chinese {
		steps = append(steps, eachRune(spaceChinese))
	}
	if p.StripAccents == nil && p.Lowercase || p.StripAccents != nil && *p.StripAccents {
		steps = append(steps, decompose, eachRune(withoutAccent))
	}
	if p.Lowercase {
		steps = append(steps, eachRune(lowercase))
	}
	return steps
}

// eachRune returns a normalizer that replaces each rune.
func eachRune(replace func(to []byte, r rune) []byte) normalizer {
	return func(text []byte, _ place) ([]byte, error) {
		to := make([]byte, 0, len(text)+len(text)/8)
		for at := 0; at < len(text); {
			r, n := utf8.DecodeRune(text[at:])
			to = replace(to, r)
			at += n
		}
		return to, nil
	}
}

// cleanRune removes control characters, and makes each space an ASCII space.
func cleanRune(to []byte, r rune) []byte {
	isLine := r == '\t' || r == '\n' || r == '\r'
	switch {
	case unicode.IsSpace(r) && (isLine || !unicode.Is(unicode.Cc, r)):
		return append(to, ' ')
	case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && !isIn(r, notControl):
		return to
	}
	return utf8.AppendRune(to, r)
}

// spaceChinese puts spaces around Chinese characters.
func spaceChinese(to []byte, r rune) []byte {
	if !isIn(r, chinese) {
		return utf8.AppendRune(to, r)
	}
	return append(utf8.AppendRune(append(to, ' '), r), ' ')
}

// undecomposed is a character that Unicode 8 does not have, and whose decomposition has no accent in Unicode 8.
const undecomposed = "\U00011938"

// decompose normalizes text to form D.
func decompose(text []byte, _ place) ([]byte, error) {
	if NFD == nil {
		for at := 0; at < len(text); {
			r, n := decodeRune(text, at)
			if r >= 0xC0 {
				return nil, &NormalizationError{"NFD", r}
			}
			at += n
		}
		return text, nil
	}
	parts := bytes.Split(text, []byte(undecomposed))
	for i := range parts {
		parts[i] = NFD(parts[i])
	}
	return bytes.Join(parts, []byte(undecomposed)), nil
}

// withoutAccent removes accents.
func withoutAccent(to []byte, r rune) []byte {
	if unicode.Is(unicode.Mn, r) && !isIn(r, noAccents) || isIn(r, otherAccents) {
		return to
	}
	return utf8.AppendRune(to, r)
}

// lowercase lowers each character alone. Only one has two characters as its lower case.
func lowercase(to []byte, r rune) []byte {
	if r == 'İ' {
		return append(to, "i\u0307"...)
	}
	return utf8.AppendRune(to, unicode.ToLower(r))
}
