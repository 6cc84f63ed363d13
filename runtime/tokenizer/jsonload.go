package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// loader builds a tokenizer from a file.
type loader struct {
	b           *Subword
	file        *jsonFile
	isByteLevel bool
	space       string // what stands for a space in the texts of tokens; "" if a space does
	isCutting   bool   // a splitter has a boundary at each cut
	isCrossed   bool   // a splitter might have none, or depend on what follows a cut
}

func (l *loader) normalizers() error {
	for _, p := range l.file.Normalizer.steps() {
		switch {
		case p.Type == "Prepend":
			l.b.normalize = append(l.b.normalize, prepend(p.Prepend))
		case p.Type == "Replace" && p.Pattern != nil && p.Pattern.String != nil:
			if *p.Pattern.String == " " {
				l.space = p.Content
			}
			for i := 1; i < len(*p.Pattern.String); i++ {
				l.isCrossed = l.isCrossed || isCut([]byte(*p.Pattern.String), i)
			}
			l.b.normalize = append(l.b.normalize, replace(*p.Pattern.String, p.Content))
		case p.Type == "NFC":
			l.b.normalize = append(l.b.normalize, compose)
		case p.Type == "BertNormalizer":
			l.b.normalize = append(l.b.normalize, bertNormalizers(&p.jsonBert)...)
		default:
			return fmt.Errorf("not supported yet: its normalizer is %s", p.Type)
		}
	}
	return nil
}

func (l *loader) splitters() error {
	for _, p := range l.file.PreTokenizer.steps() {
		if l.isByteLevel {
			return fmt.Errorf("not supported yet: its pre-tokenizer has %s after ByteLevel", p.Type)
		}
		var err error
		switch p.Type {
		case "ByteLevel":
			err = l.byteLevel(p)
		case "Split":
			err = l.splitBy(p)
		case "Digits":
			l.b.split = append(l.b.split, splitDigits(p.Single))
		case "Metaspace":
			err = l.metaspace(p)
		case "BertPreTokenizer":
			l.b.split = append(l.b.split, bertPieces)
			l.isCutting = true
		default:
			err = fmt.Errorf("not supported yet: its pre-tokenizer is %s", p.Type)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) byteLevel(p *jsonPart) error {
	l.isByteLevel = true
	if p.PrefixSpace && len(l.b.split) == 0 {
		l.b.normalize = append(l.b.normalize, spaceFirst)
	} else if p.PrefixSpace {
		l.b.split = append(l.b.split, prefixSpace)
		l.isCrossed = true
	}
	if p.UseRegex != nil && !*p.UseRegex {
		return nil
	}
	return l.addPattern(gpt2Pattern, isolated)
}

func (l *loader) addPattern(text string, how behavior) error {
	c, err := compilePattern(text)
	if err != nil {
		return err
	}
	l.b.split = append(l.b.split, c.splitter(how))
	l.isCutting = l.isCutting || how == isolated && c.cuts && c.matchesEach()
	l.isCrossed = l.isCrossed || !c.cuts || how != isolated || l.space != ""
	return nil
}

func (l *loader) splitBy(p *jsonPart) error {
	how := p.Behavior
	if p.Invert && how == removed {
		how = onlyMatches
	} else if p.Invert && how != isolated || !slices.Contains(behaviors, how) {
		return fmt.Errorf("not supported yet: its pre-tokenizer splits text with behavior %s, invert %t", how, p.Invert)
	}
	switch {
	case p.Pattern == nil:
		return errors.New("its pre-tokenizer Split has no pattern")
	case p.Pattern.Regex != nil:
		return l.addPattern(*p.Pattern.Regex, how)
	case p.Pattern.String != nil && *p.Pattern.String != "":
		if *p.Pattern.String == " " && l.space != "" {
			return nil // normalization has left no spaces
		}
		return l.addPattern(quotePattern(*p.Pattern.String), how)
	}
	return errors.New("its pre-tokenizer Split has an empty pattern")
}

// quotePattern returns a regular expression for a text.
func quotePattern(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\x{%X}`, r)
	}
	return b.String()
}

func (l *loader) metaspace(p *jsonPart) error {
	if len(l.b.split) > 0 {
		return errors.New("not supported yet: its pre-tokenizer has Metaspace after others")
	}
	l.space = p.Replacement
	if l.space == "" {
		l.space = "▁"
	}
	from := afterToken
	switch p.Scheme {
	case "first":
		from = textStart
	case "never":
		from = textStart + 1
	}
	l.b.normalize = append(l.b.normalize, markSpaces(l.space, from))
	if p.Split == nil || *p.Split {
		l.b.split = append(l.b.split, splitBefore([]byte(l.space)))
	}
	return nil
}

// vocabulary sets the texts of tokens, and the tokens of bytes or characters.
func (l *loader) vocabulary() error {
	b, m := l.b, l.file.Model
	decode := l.tokenText()
	b.characters = map[rune]int32{}
	for word, id := range m.Vocab {
		b.setText(id, decode(word))
		if r, n := utf8.DecodeRuneInString(word); n == len(word) {
			b.characters[r] = id
		}
	}
	b.unknown.id = -1
	if l.isByteLevel {
		bytes := [256]int32{}
		for c := range bytes {
			id, ok := m.Vocab[string(byteRunes[c])]
			if !ok {
				id = -1
			}
			bytes[c] = id
		}
		b.bytes = &bytes
	} else if m.ByteFallback {
		var err error
		b.unknown.bytes, err = bytesOf(m.Vocab, func(c byte) string { return fmt.Sprintf("<0x%02X>", c) })
		if err != nil {
			return err
		}
	}
	if m.Unknown != nil {
		id, ok := m.Vocab[*m.Unknown]
		if !ok {
			return fmt.Errorf("model.unk_token is %s, which is not in the vocabulary", *m.Unknown)
		}
		b.unknown.id, b.unknown.isFuse = id, m.FuseUnknown
	}
	if m.IgnoreMerges {
		b.whole = map[string]int32{}
		for word, id := range m.Vocab {
			if l.isByteLevel {
				word = string(byteText(word))
			}
			b.whole[word] = id
		}
	}
	return nil
}

// tokenText returns the function that decodes the texts of tokens.
func (l *loader) tokenText() func(word string) []byte {
	if l.isByteLevel {
		return byteText
	}
	hasFallback := l.file.Model.ByteFallback
	space := l.space
	for _, d := range l.file.Decoder.steps() {
		if d.Type == "Strip" && d.Start > 0 && d.Content == " " || d.Type == "Metaspace" && d.Scheme != "never" {
			l.b.dropsSpace = true
		}
		if d.Type == "ByteFallback" {
			hasFallback = true
		}
	}
	return func(word string) []byte {
		var c byte
		if n, _ := fmt.Sscanf(word, "<0x%02X>", &c); n == 1 && len(word) == len("<0x00>") && hasFallback {
			return []byte{c}
		}
		if space != "" {
			word = strings.ReplaceAll(word, space, " ")
		}
		return []byte(word)
	}
}

func (l *loader) addTokens() error {
	b := l.b
	for _, a := range l.file.Added {
		switch {
		case a.SingleWord:
			return fmt.Errorf("not supported yet: the added token %q has single_word", a.Content)
		case a.Normalized && l.changesTokens():
			return fmt.Errorf("not supported yet: the added token %q is normalized", a.Content)
		case a.Content == "" || a.ID < 0 || a.ID > maxID:
			return fmt.Errorf("the added token %q has the ID %d", a.Content, a.ID)
		}
		text := a.Content
		if b.words != nil {
			text = l.afterSpace(text)
		}
		b.setText(a.ID, []byte(text))
		if a.Special {
			b.special[a.Content] = a.ID
		}
		list := &b.added.byFirst[a.Content[0]]
		t := addedToken{[]byte(a.Content), a.ID, a.LStrip, a.RStrip}
		at := 0
		for at < len(*list) && len((*list)[at].text) >= len(t.text) {
			at++
		}
		*list = append((*list)[:at], append([]addedToken{t}, (*list)[at:]...)...)
		b.added.isAny = true
	}
	return nil
}

// changesTokens reports whether normalization may change the texts of added tokens.
func (l *loader) changesTokens() bool {
	return slices.ContainsFunc(l.file.Normalizer.steps(), func(p *jsonPart) bool { return p.Type != "NFC" })
}

func (l *loader) mergeList() error {
	m := l.file.Model
	l.b.merges = make(map[uint64]merged, len(m.Merges))
	for rank, pair := range m.Merges {
		left, hasLeft := m.Vocab[pair[0]]
		right, hasRight := m.Vocab[pair[1]]
		both, hasBoth := m.Vocab[pair[0]+pair[1]]
		if !hasLeft || !hasRight || !hasBoth {
			return fmt.Errorf("merge %d is of %q and %q, which are not both in the vocabulary together with their "+
				"result", rank, pair[0], pair[1])
		}
		l.b.merges[pairKey(left, right)] = merged{int32(rank), both}
	}
	return nil
}

// hasCutCharacters reports whether each character at a cut has a token. Otherwise merges might reach over characters
// that are dropped.
func (l *loader) hasCutCharacters() bool {
	if l.b.unknown.bytes != nil {
		return true
	}
	for _, c := range []byte(cutAfter + cutBefore) {
		id := int32(-1)
		if l.isByteLevel {
			id = l.b.bytes[c]
		} else if token, ok := l.b.characters[rune(c)]; ok {
			id = token
		}
		if id < 0 {
			return false
		}
	}
	return true
}

// findCuts decides whether texts can be encoded in parts: a splitter has a boundary at each cut, or no merge reaches
// over one.
func (l *loader) findCuts() {
	b := l.b
	b.isCharacters = len(b.merges) == 0 && b.whole == nil && len(b.split) == 0 && len(b.normalize) == 0 &&
		!b.added.isAny && b.unknown.id < 0
	if !l.isCutting && !l.isCrossed {
		l.isCutting = l.hasCutCharacters()
		for _, pair := range l.file.Model.Merges {
			both := []byte(pair[0] + pair[1])
			if l.isByteLevel {
				both = byteText(string(both))
			} else if l.space != "" {
				both = bytes.ReplaceAll(both, []byte(l.space), []byte(" "))
			}
			for i := 1; i < len(both); i++ {
				l.isCutting = l.isCutting && !isCut(both, i)
			}
		}
		l.isCutting = l.isCutting && !l.file.Model.IgnoreMerges
	}
	l.b.canBeCut = l.isCutting && !l.isCrossed && l.b.added.canBeCut()
}
