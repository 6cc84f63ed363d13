package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// wordPieces is WordPiece: a piece is split from its beginning into the longest tokens that there are. A piece for
// which that fails, or that has too many characters, is one unknown token.
type wordPieces struct {
	first, rest map[string]int32 // tokens at the beginning of a piece, and after it (without their prefix)
	unknown     int32
	characters  int // of the longest piece
	bytes       int // of the longest token
}

// append appends the tokens of a piece.
func (p *wordPieces) append(to []int32, piece []byte) []int32 {
	before := len(to)
	if utf8.RuneCount(piece) > p.characters {
		return append(to, p.unknown)
	}
	tokens := p.first
	for len(piece) > 0 {
		n, id := p.longest(tokens, piece)
		if n == 0 {
			return append(to[:before], p.unknown)
		}
		to, piece, tokens = append(to, id), piece[n:], p.rest
	}
	return to
}

// longest returns the longest of the tokens with which a piece begins, and its length; 0 if there is none.
func (p *wordPieces) longest(tokens map[string]int32, piece []byte) (n int, id int32) {
	for n = min(len(piece), p.bytes); n > 0; n-- {
		if n < len(piece) && !utf8.RuneStart(piece[n]) {
			continue
		}
		if id, ok := tokens[string(piece[:n])]; ok {
			return n, id
		}
	}
	return 0, 0
}

// wordPieceDefaults are those of Hugging Face's library.
const (
	continuingPrefix = "##"
	longestPiece     = 100
)

// wordPieces sets the model of a WordPiece file.
func (l *loader) wordPieces() error {
	m := l.file.Model
	if m.Type != wordPieceModel {
		return nil
	}
	p := &wordPieces{first: m.Vocab, rest: map[string]int32{}, characters: longestPiece}
	if m.Characters != nil {
		p.characters = *m.Characters
	}
	prefix := continuingPrefix
	if m.Prefix != nil {
		prefix = *m.Prefix
	}
	for word, id := range m.Vocab {
		p.bytes = max(p.bytes, len(word))
		text, isRest := strings.CutPrefix(word, prefix)
		if isRest {
			p.rest[text] = id
			l.b.setText(id, []byte(text))
		} else {
			l.b.setText(id, []byte(l.afterSpace(word)))
		}
	}
	if m.Unknown == nil {
		return fmt.Errorf("model.unk_token is missing")
	}
	p.unknown = l.b.unknown.id
	l.b.words, l.b.dropsSpace = p, true
	l.isCrossed = l.isCrossed || !l.isCutting
	return nil
}

// afterSpace returns the text of a token that begins a piece: with a space before it, and without that before
// punctuation and contractions if the decoder cleans up.
func (l *loader) afterSpace(word string) string {
	word = " " + word
	for _, d := range l.file.Decoder.steps() {
		if d.Type == wordPieceModel && d.Cleanup {
			return cleanup.Replace(word)
		}
	}
	return word
}

// cleanup replaces what the decoder of WordPiece does.
var cleanup = strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m",
	" do not", " don't", " 's", "'s", " 've", "'ve", " 're", "'re")
