package shell

import (
	"slices"
	"strconv"
	"strings"
)

// fields expands words into arguments: unquoted variables are split at blanks, and "${A[@]}" has a word for each
// element.
func (e *expander) fields(words ...word) []Word {
	f := &fieldList{words: make([]Word, 0, len(words)), pieces: make([]Piece, 0, len(words))}
	for i := range words {
		for k := range words[i].parts {
			e.part(&words[i].parts[k], f)
		}
		f.end()
		e.spend(f.added)
		f.added = 0
	}
	return f.words
}

// text expands a word into one text, as an assignment does.
func (e *expander) text(w *word) []Piece {
	f := &fieldList{whole: true}
	for i := range w.parts {
		e.part(&w.parts[i], f)
	}
	e.spend(f.added)
	return f.current()
}

// fieldList collects pieces into words.
type fieldList struct {
	words  []Word
	pieces []Piece // of all words
	start  int     // index of the current word's first piece
	open   bool    // the current word exists, even if it is empty
	whole  bool    // nothing is split
	added  int     // pieces that are not spent from the budget yet, with those that have no text
}

// current returns the pieces of the current word.
func (f *fieldList) current() []Piece { return slices.Clip(f.pieces[f.start:]) }

// add adds a piece to the current word.
func (f *fieldList) add(p Piece) {
	f.added++
	f.open = true
	if p.Text != "" || p.Unknown != nil {
		f.pieces = append(f.pieces, p)
	}
}

// end ends the current word.
func (f *fieldList) end() {
	if f.open {
		f.words = append(f.words, Word{f.current()})
	}
	f.start, f.open = len(f.pieces), false
}

// isBlank reports whether a byte splits words.
func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// split adds a piece of an unquoted variable, split at blanks.
func (f *fieldList) split(p Piece) {
	if p.Unknown != nil {
		f.add(p)
		return
	}
	for start := 0; start < len(p.Text); {
		if isBlank(p.Text[start]) {
			f.end()
			start++
			continue
		}
		end := start
		for end < len(p.Text) && !isBlank(p.Text[end]) {
			end++
		}
		f.add(p.cut(start, end))
		start = end
	}
}

// cut returns a part of a piece.
func (p *Piece) cut(start, end int) Piece {
	out := *p
	out.Text = p.Text[start:end]
	if p.Span.End-p.Span.Start == len(p.Text) {
		out.Span = Span{p.Span.Start + start, p.Span.Start + end}
	}
	return out
}

// cut returns a part of a word.
func (w *Word) cut(start, end int) (out Word) {
	at := 0
	for i := range w.Pieces {
		p := &w.Pieces[i]
		from, to := max(start-at, 0), min(end-at, len(p.Text))
		if from < to || p.Unknown != nil && at >= start && at <= end {
			out.Pieces = append(out.Pieces, p.cut(min(from, len(p.Text)), max(min(from, len(p.Text)), to)))
		}
		at += len(p.Text)
	}
	return out
}

// part expands a part of a word.
func (e *expander) part(p *part, f *fieldList) {
	switch p.kind {
	case literal:
		f.add(Piece{Text: string(e.script.source[p.span.Start:p.span.End]), Span: p.span, quoted: p.quoted})
	case variable:
		e.variable(p, f)
	case calculation:
		text, why := e.calculate(p.inner)
		f.add(Piece{Text: text, Span: p.span, Unknown: why, quoted: p.quoted})
	case substitution:
		f.add(Piece{Span: p.span, Unknown: e.output(p)})
	case hereText:
		f.open = f.open || p.quoted // "$(...)" is a word, even if it is empty
		for _, piece := range withoutLastLineEnds(e.text(p.arg)) {
			if p.quoted || f.whole {
				f.add(piece)
			} else {
				f.split(piece)
			}
		}
	}
}

// output returns why the output of a command is not known.
func (e *expander) output(p *part) *Unknown {
	return &Unknown{Name: e.script.lineName(p.span.Start), At: p.span,
		Why: "is the output of a command, which planc does not run"}
}

// variable expands $NAME and ${NAME...}.
func (e *expander) variable(p *part, f *fieldList) {
	v, why := e.lookup(p)
	f.open = f.open || p.quoted && p.index == "" // "$X" is a word, even if it is empty
	isUnset := why != nil && why.Why == noValue
	isEmpty := isUnset || why == nil && len(v.elems) <= 1 && (len(v.elems) == 0 || len(v.elems[0]) == 0)
	switch op := strings.TrimPrefix(p.op, ":"); {
	case p.length:
		e.length(p, v, why, f)
		return
	case p.op == "other":
		f.add(Piece{Span: p.span, Unknown: &Unknown{Name: p.name, At: p.span,
			Why: "is used with an operator that planc does not evaluate"}})
		return
	case op == "+":
		if why == nil && !(isEmpty && p.op == ":+") {
			e.argument(p, f)
		} else if why != nil && !isUnset {
			f.add(Piece{Span: p.span, Unknown: why})
		}
		return
	case (op == "-" || op == "=") && (isUnset || isEmpty && p.op[0] == ':'):
		if op == "=" {
			e.vars[p.name] = &value{elems: [][]Piece{e.text(p.arg)}}
			v, why = e.vars[p.name], nil
			break
		}
		e.argument(p, f)
		return
	}
	if isUnset && e.positional != nil && p.name[0] >= '1' && p.name[0] <= '9' {
		return // a function or set -- has fewer arguments
	}
	if why != nil {
		f.add(Piece{Span: p.span, Unknown: why})
		return
	}
	e.elements(p, v, f)
}

// argument expands the word of ${NAME:-word}.
func (e *expander) argument(p *part, f *fieldList) {
	for i := range p.arg.parts {
		arg := &p.arg.parts[i]
		if arg.kind == literal && !arg.quoted && !p.quoted && !f.whole {
			f.split(Piece{Text: string(e.script.source[arg.span.Start:arg.span.End]), Span: arg.span})
			continue
		}
		e.part(arg, f)
	}
}

// elements adds a variable's value: all elements of an array with index @ or *, otherwise one.
func (e *expander) elements(p *part, v *value, f *fieldList) {
	elems := v.elems
	if p.index == "" {
		elems = elems[:min(1, len(elems))]
	}
	scalar := !v.isArray && len(elems) == 1 && isOneWord(elems[0])
	for i, elem := range elems {
		if i > 0 {
			if f.whole || p.quoted && p.index == "*" {
				f.add(Piece{Text: " "})
			} else {
				f.end()
			}
		}
		if p.quoted {
			f.open = true
		}
		for j := range elem {
			piece := elem[j]
			piece.via = &reference{p.name, p.span, p.quoted, scalar, piece.via}
			if p.quoted || f.whole {
				f.add(piece)
			} else {
				f.split(piece)
			}
		}
	}
}

// isOneWord reports whether a value has no blanks.
func isOneWord(pieces []Piece) bool {
	for i := range pieces {
		if strings.ContainsAny(pieces[i].Text, " \t\n") {
			return false
		}
	}
	return true
}

// noValue is why a variable is unknown that nothing has assigned.
const noValue = "has no value here"

// lookup returns the value of a part's variable, or why it is not known.
func (e *expander) lookup(p *part) (*value, *Unknown) {
	unset := &Unknown{Name: p.name, At: p.span, Why: noValue}
	if n, ok := decimal(p.name); ok && n > 0 && n <= int64(len(e.positional)) {
		return &value{elems: [][]Piece{e.positional[n-1]}}, nil
	}
	switch p.name {
	case "#":
		return &value{elems: [][]Piece{{{Text: strconv.Itoa(e.argumentCount()), Span: p.span}}}}, nil
	case "@":
		return e.allArguments(p)
	}
	v := e.vars[p.name]
	if v == nil || v.unknown != nil || hasUnknown(v, p) {
		if text, ok := e.defined(p.name); ok {
			return &value{elems: [][]Piece{{{Text: text}}}}, nil
		}
	}
	switch {
	case v == nil:
		return nil, unset
	case v.unknown != nil:
		return nil, v.unknown
	case p.index != "" && p.index != "@" && p.index != "*":
		return e.element(p, v)
	}
	return v, nil
}

// hasUnknown reports whether a scalar has unknown pieces.
func hasUnknown(v *value, p *part) bool {
	if v.isArray || p.index != "" || len(v.elems) != 1 {
		return false
	}
	w := Word{v.elems[0]}
	return w.Unknown() != nil
}

// element returns one element of an array.
func (e *expander) element(p *part, v *value) (*value, *Unknown) {
	i, ok := decimal(p.index)
	if !ok {
		start := p.span.Start + len("${") + len(p.name) + 1
		text, why := e.calculate(Span{start, start + len(p.index)})
		if why != nil {
			return nil, why
		}
		i, _ = decimal(text)
	}
	if i < 0 || i >= int64(len(v.elems)) {
		return &value{}, nil
	}
	return &value{elems: v.elems[i : i+1]}, nil
}

// argumentCount returns the number of positional parameters.
func (e *expander) argumentCount() int {
	if e.positional != nil {
		return len(e.positional)
	}
	n := 0
	for ; ; n++ {
		if _, ok := e.defined(strconv.Itoa(n + 1)); !ok {
			return n
		}
	}
}

// allArguments returns the value of $@.
func (e *expander) allArguments(p *part) (*value, *Unknown) {
	v := &value{isArray: true, elems: e.positional}
	if e.positional != nil {
		return v, nil
	}
	if text, ok := e.defined("@"); ok {
		for _, word := range strings.Fields(text) {
			v.elems = append(v.elems, []Piece{{Text: word}})
		}
		return v, nil
	}
	n := e.argumentCount()
	if n == 0 {
		return nil, &Unknown{Name: "@", At: p.span, Why: "has the arguments of the script, which are not given",
			Values: "'...'"}
	}
	for i := range n {
		v.elems = append(v.elems, []Piece{{Text: e.define[strconv.Itoa(i+1)]}})
	}
	return v, nil
}

// length expands ${#NAME} and ${#NAME[@]}.
func (e *expander) length(p *part, v *value, why *Unknown, f *fieldList) {
	if why != nil {
		f.add(Piece{Span: p.span, Unknown: why})
		return
	}
	n := len(v.elems)
	if p.index == "" {
		n = 0
		if len(v.elems) > 0 {
			w := Word{v.elems[0]}
			n = len(w.Text())
		}
	}
	f.add(Piece{Text: strconv.Itoa(n), Span: p.span})
}

// decimal reads an integer.
func decimal(s string) (int64, bool) {
	if s == "" || s[0] > '9' { // most are names, for which ParseInt would allocate an error
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
