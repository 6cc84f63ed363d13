package tokenizer

import "unicode"

// runeSet is a set of runes: a character class of a pattern.
type runeSet struct {
	low       [lowRunes / 64]uint64 // the runes below lowRunes
	ranges    []runeRange
	tables    []tableTerm
	isNegated bool
}

// lowRunes is the first rune that is not kept as a bit. UTF-8 writes the runes below it in one or two bytes.
const lowRunes = 0x800

// runeRange is an inclusive range of runes.
type runeRange struct{ first, last rune }

// tableTerm is a Unicode category or script, or its complement.
type tableTerm struct {
	table     *unicode.RangeTable
	isNegated bool
}

// addRange adds a range, with the other cases of its letters if fold is set.
func (s *runeSet) addRange(first, last rune, fold bool) {
	s.ranges = append(s.ranges, runeRange{first, last})
	if !fold {
		return
	}
	for r := first; r <= last; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			s.ranges = append(s.ranges, runeRange{f, f})
		}
	}
}

// finish computes the bits of low runes. The set does not change afterwards.
func (s *runeSet) finish() *runeSet {
	for r := rune(0); r < lowRunes; r++ {
		if s.search(r) {
			s.low[r/64] |= 1 << (r % 64)
		}
	}
	return s
}

// search reports whether a rune is in the set, without the bits of low runes.
func (s *runeSet) search(r rune) bool {
	for _, x := range s.ranges {
		if x.first <= r && r <= x.last {
			return !s.isNegated
		}
	}
	for _, t := range s.tables {
		if unicode.Is(t.table, r) != t.isNegated {
			return !s.isNegated
		}
	}
	return s.isNegated
}

// has reports whether a rune is in the set.
func (s *runeSet) has(r rune) bool {
	if r < lowRunes {
		return s.low[r/64]>>(r%64)&1 != 0
	}
	return s.search(r)
}

// hasAny reports whether one of the ASCII characters is in the set.
func (s *runeSet) hasAny(characters string) bool {
	for _, r := range characters {
		if s.has(r) {
			return true
		}
	}
	return false
}
