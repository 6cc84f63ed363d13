package shell

import "strings"

// splitText splits the words of an eval or of bash -c, which are the text of commands, into these commands with their
// words. Quotes in the text group words; &&, ||, ; and line ends separate commands.
func splitText(text []Word) (commands [][]Word) {
	t := &textSplitter{}
	for i := range text {
		for j := range text[i].Pieces {
			t.piece(&text[i].Pieces[j])
		}
		if t.quote == 0 {
			t.fields.end()
		} else {
			t.fields.add(Piece{Text: " "})
		}
	}
	t.next()
	return t.commands
}

// textSplitter splits the text of commands.
type textSplitter struct {
	fields   fieldList
	quote    byte // the open quote; 0 if none is
	commands [][]Word
}

// next ends a command.
func (t *textSplitter) next() {
	t.fields.end()
	words := withoutRedirections(t.fields.words)
	if len(words) > 0 {
		t.commands = append(t.commands, words)
	}
	t.fields.words = nil
}

// piece adds a piece.
func (t *textSplitter) piece(p *Piece) {
	if p.Unknown != nil {
		t.fields.add(*p)
		return
	}
	start := 0
	flush := func(end int) {
		if end > start {
			t.fields.add(p.cut(start, end))
		}
	}
	for i := 0; i < len(p.Text); i++ {
		c := p.Text[i]
		switch {
		case t.quote != 0:
			if c != t.quote {
				continue
			}
			flush(i)
			t.quote, t.fields.open, start = 0, true, i+1
		case c == '"' || c == '\'':
			flush(i)
			t.quote, start = c, i+1
		case c == '\\' && i+1 < len(p.Text):
			flush(i)
			i++
			start = i
			if p.Text[i] == '\n' {
				start = i + 1
			}
		case c == '&' && i > 0 && p.Text[i-1] == '>': // 2>&1
		case isBlank(c) || strings.IndexByte(";&|", c) >= 0:
			flush(i)
			t.fields.end()
			if !isBlank(c) || c == '\n' {
				t.next()
			}
			start = i + 1
		}
	}
	flush(len(p.Text))
}

// withoutRedirections returns words without 2>&1, > file and so on.
func withoutRedirections(words []Word) (out []Word) {
	for i := 0; i < len(words); i++ {
		text := strings.TrimLeft(words[i].Text(), "0123456789&")
		if text == "" || text[0] != '>' && text[0] != '<' {
			out = append(out, words[i])
			continue
		}
		if strings.Trim(text, "<>&") == "" {
			i++ // the file
		}
	}
	return out
}
