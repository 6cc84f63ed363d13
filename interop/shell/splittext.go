package shell

import "strings"

// variables returns the value of a variable in a text that stands at a span, or why it is not known.
type variables func(name string, at Span) ([]Piece, *Unknown)

// splitText splits the words of an eval or of bash -c, which are the text of commands, into these commands with their
// words. Quotes in the text group words; &&, ||, ; and line ends separate commands. The variables that the text exports
// stand in front of the commands that follow: NAME=value.
func splitText(text []Word, outer variables) (commands [][]Word) {
	t := &textSplitter{outer: outer, own: map[string]Word{}}
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
	fields    fieldList
	quote     byte // the open quote; 0 if none is
	isComment bool
	outer     variables
	own       map[string]Word // variables that the text sets
	exports   []Word          // NAME=value
	commands  [][]Word
}

// next ends a command.
func (t *textSplitter) next() {
	t.fields.end()
	words := withoutRedirections(t.fields.words)
	t.fields.words = nil
	if len(words) == 0 || t.assign(words) {
		return
	}
	t.commands = append(t.commands, append(t.exports[:len(t.exports):len(t.exports)], words...))
}

// assign takes a command that only sets variables, and reports whether it is one.
func (t *textSplitter) assign(words []Word) bool {
	exports := words[0].Text() == "export"
	if exports {
		words = words[1:]
	}
	for i := range words {
		name, _, ok := strings.Cut(words[i].Text(), "=")
		if !isName(name) || !ok && !exports {
			return false
		}
	}
	for i := range words {
		w := words[i]
		name, _, ok := strings.Cut(w.Text(), "=")
		if ok {
			t.own[name] = w.cut(len(name)+1, len(w.Text()))
		} else if value, isOwn := t.own[name]; isOwn {
			w = Word{append([]Piece{{Text: name + "="}}, value.Pieces...)}
			ok = true
		}
		if exports && ok {
			t.exports = append(t.exports, w)
		}
	}
	return true
}

// piece adds a piece.
func (t *textSplitter) piece(p *Piece) {
	if p.Unknown != nil {
		if !t.isComment {
			t.fields.add(*p)
		}
		return
	}
	start := 0
	flush := func(end int) {
		if end > start && !t.isComment {
			t.fields.add(p.cut(start, end))
		}
	}
	for i := 0; i < len(p.Text); i++ {
		c := p.Text[i]
		switch {
		case t.isComment:
			t.isComment = c != '\n'
			start = i + 1
			if !t.isComment {
				t.next()
			}
		case c == '$' && t.quote != '\'' && variableEnd(p.Text[i:]) > 0:
			flush(i)
			start = i + variableEnd(p.Text[i:])
			t.variable(p.cut(i, start))
			i = start - 1
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
		case c == '#' && start == i && !t.fields.open:
			t.isComment = true
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

// variableEnd returns the length of $NAME, ${NAME} or ${NAME:-text} at the start of a text; 0 if there is none.
func variableEnd(text string) int {
	if strings.HasPrefix(text, "${") {
		end := strings.IndexByte(text, '}')
		if end < 0 || !isName(strings.TrimSuffix(bareName(text[2:end]), ":")) {
			return 0
		}
		return end + 1
	}
	end := 1
	for end < len(text) && isNameByte(text[end], end == 1) {
		end++
	}
	if end == 1 {
		return 0
	}
	return end
}

// bareName returns the name in ${NAME-text}, with the colon of ${NAME:-text}.
func bareName(inner string) string {
	name, _, _ := strings.Cut(inner, "-")
	return name
}

// variable adds the value of a variable, which a piece has as its text: $NAME, ${NAME} or ${NAME:-text}.
func (t *textSplitter) variable(p Piece) {
	inner := strings.Trim(p.Text, "${}")
	name, text, hasDefault := strings.Cut(inner, "-")
	name = strings.TrimSuffix(name, ":")
	value, isOwn := t.own[name]
	var why *Unknown
	if !isOwn {
		value.Pieces, why = t.outer(name, p.Span)
	}
	switch {
	case why != nil && !hasDefault:
		p.Unknown, p.Text = why, ""
		t.fields.add(p)
		return
	case why != nil:
		value.Pieces = []Piece{{Text: text, Span: p.Span}}
	}
	scalar := isOneWord(value.Pieces)
	for i := range value.Pieces {
		piece := value.Pieces[i]
		piece.via = below(p.via, &reference{name, p.Span, p.quoted, scalar, piece.via})
		if t.quote != 0 {
			t.fields.add(piece)
		} else {
			t.fields.split(piece)
		}
	}
}

// below returns a chain of references that ends in another chain.
func below(outer, inner *reference) *reference {
	if outer == nil {
		return inner
	}
	first := *outer
	first.inner = below(outer.inner, inner)
	return &first
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
