package tokenizer

import (
	"bytes"
	"unicode"
)

// splitter splits text into pieces, in order.
type splitter func(text []byte, emit func(piece []byte))

// behavior is what becomes of the matches of a pattern that splits text, as Hugging Face's tokenizers name it.
type behavior string

const (
	isolated           behavior = "Isolated"
	removed            behavior = "Removed"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"

	// onlyMatches is Removed with "invert": what lies between matches is removed.
	onlyMatches behavior = "inverted Removed"
)

// behaviors are those that a tokenizer.json may name.
var behaviors = []behavior{isolated, removed, mergedWithPrevious, mergedWithNext}

// stretch is a part of a text that is a match or lies between matches.
type stretch struct {
	text    []byte
	isMatch bool
}

// splitter returns what splits text by the matches of a pattern.
func (p *pattern) splitter(how behavior) splitter {
	if how == isolated {
		return p.isolate
	}
	return func(text []byte, emit func([]byte)) {
		var all []stretch
		p.eachStretch(text, func(s stretch) { all = append(all, s) })
		emitStretches(all, how, emit)
	}
}

// isolate emits matches, and what lies between them.
func (p *pattern) isolate(text []byte, emit func([]byte)) {
	p.eachStretch(text, func(s stretch) { emit(s.text) })
}

// eachStretch calls each for the matches in a text, and for what lies between them.
func (p *pattern) eachStretch(text []byte, each func(stretch)) {
	from := 0
	for at := 0; at < len(text); {
		end := p.match(text, at)
		if end < 0 {
			_, n := decodeRune(text, at)
			at += n
			continue
		}
		if from < at {
			each(stretch{text[from:at], false})
		}
		each(stretch{text[at:end], true})
		at, from = end, end
	}
	if from < len(text) {
		each(stretch{text[from:], false})
	}
}

// emitStretches emits the pieces that result from adjacent stretches.
func emitStretches(all []stretch, how behavior, emit func([]byte)) {
	for i := 0; i < len(all); i++ {
		piece, last := all[i].text, i
		switch {
		case how == removed && all[i].isMatch, how == onlyMatches && !all[i].isMatch:
			continue
		case how == mergedWithPrevious && !all[i].isMatch && i+1 < len(all):
			last = i + 1
		case how == mergedWithNext && all[i].isMatch && i+1 < len(all) && !all[i+1].isMatch:
			last = i + 1
		}
		if last > i {
			piece = piece[: len(piece)+len(all[last].text) : len(piece)+len(all[last].text)]
			i = last
		}
		emit(piece)
	}
}

// splitDigits emits numbers apart from other text, and each digit of theirs if single is set.
func splitDigits(single bool) splitter {
	return func(text []byte, emit func([]byte)) {
		from := 0
		wasNumber := false
		for at := 0; at < len(text); {
			r, n := decodeRune(text, at)
			isNumber := unicode.IsNumber(r)
			if at > from && (isNumber != wasNumber || isNumber && single) {
				emit(text[from:at])
				from = at
			}
			wasNumber = isNumber
			at += n
		}
		emit(text[from:])
	}
}

// prefixSpace puts a space in front of pieces that do not begin with one.
func prefixSpace(piece []byte, emit func([]byte)) {
	if piece[0] != ' ' {
		piece = append([]byte{' '}, piece...)
	}
	emit(piece)
}

// splitBefore emits the pieces of text that begin with a mark.
func splitBefore(mark []byte) splitter {
	return func(text []byte, emit func([]byte)) {
		for {
			next := -1
			if len(text) > len(mark) {
				next = bytes.Index(text[len(mark):], mark)
			}
			if next < 0 {
				emit(text)
				return
			}
			emit(text[:len(mark)+next])
			text = text[len(mark)+next:]
		}
	}
}
