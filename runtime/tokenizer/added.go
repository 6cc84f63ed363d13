package tokenizer

import (
	"bytes"
	"unicode"
)

// addedTokens are the texts of tokens that are found before anything else, as <|endoftext|>. Where several begin at a
// position, the longest is taken.
type addedTokens struct {
	byFirst [256][]addedToken // longest first
	isAny   bool
}

type addedToken struct {
	text           []byte
	id             int32
	lstrip, rstrip bool // whether spaces before and after belong to it
}

// each calls part for the parts of a text: for each added token with its ID, for text between them with -1.
func (a *addedTokens) each(text []byte, part func(text []byte, id int32) error) error {
	from := 0
	for at := 0; a.isAny && at < len(text); at++ {
		t := a.at(text[at:])
		if t == nil {
			continue
		}
		before := text[from:at]
		if t.lstrip {
			before = bytes.TrimRightFunc(before, unicode.IsSpace)
		}
		if len(before) > 0 {
			if err := part(before, -1); err != nil {
				return err
			}
		}
		end := at + len(t.text)
		if t.rstrip {
			end = len(text) - len(bytes.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if err := part(text[at:end], t.id); err != nil {
			return err
		}
		from, at = end, end-1
	}
	if from == len(text) {
		return nil
	}
	return part(text[from:], -1)
}

func (a *addedTokens) at(text []byte) *addedToken {
	list := a.byFirst[text[0]]
	for i := range list {
		if bytes.HasPrefix(text, list[i].text) {
			return &list[i]
		}
	}
	return nil
}

// canBeCut reports whether no added token reaches over a cut.
func (a *addedTokens) canBeCut() bool {
	for _, list := range a.byFirst {
		for _, t := range list {
			for i := 1; i < len(t.text); i++ {
				if isCut(t.text, i) {
					return false
				}
			}
			if t.rstrip && isCut([]byte{t.text[len(t.text)-1], ' '}, 1) {
				return false
			}
		}
	}
	return true
}
