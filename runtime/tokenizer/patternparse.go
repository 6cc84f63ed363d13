package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a part of a parsed pattern.
type node struct {
	kind         nodeKind
	set          *runeSet // of setNode
	parts        []*node  // of sequences, alternatives; the single part of lookaheads and repetitions
	min, max     int      // of repeatNode; max is -1 if there is no limit
	isNegative   bool     // of lookNode
	isPossessive bool     // of repeatNode
}

type nodeKind int

const (
	setNode    nodeKind = iota // one rune of a set
	seqNode                    // parts one after the other
	altNode                    // the first part that matches
	repeatNode                 // a part, min to max times, as often as possible
	lookNode                   // nothing, if the part matches here, or does not
	endNode                    // the end of the text
)

// parser parses the regular expressions of tokenizers.
type parser struct {
	text   string
	at     int
	isFold bool // inside (?i:
}

// unsupported is a panic value: what a pattern uses that is not supported.
type unsupported string

func (p *parser) refuse(format string, args ...any) {
	panic(unsupported(fmt.Sprintf(format, args...)))
}

func refusedPattern(text string, bad unsupported) error {
	return fmt.Errorf("the regular expression %q has %s, which is not supported", text, string(bad))
}

// parsePattern parses a regular expression in the syntax that tokenizers share (Oniguruma, Rust).
func parsePattern(text string) (n *node, err error) {
	p := &parser{text: text}
	defer func() {
		if bad, ok := recover().(unsupported); ok {
			err = refusedPattern(text, bad)
		}
	}()
	n = p.alternatives()
	if p.at < len(text) {
		p.refuse("an unmatched )")
	}
	return n, nil
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// take skips a word if it comes next.
func (p *parser) take(word string) bool {
	if strings.HasPrefix(p.text[p.at:], word) {
		p.at += len(word)
		return true
	}
	return false
}

func (p *parser) alternatives() *node {
	n := &node{kind: altNode}
	for {
		n.parts = append(n.parts, p.sequence())
		if !p.take("|") {
			break
		}
	}
	if len(n.parts) == 1 {
		return n.parts[0]
	}
	return n
}

func (p *parser) sequence() *node {
	n := &node{kind: seqNode}
	for p.at < len(p.text) && p.peek() != '|' && p.peek() != ')' {
		n.parts = append(n.parts, p.repeated(p.atom()))
	}
	return n
}

// atom parses a group, a class, an assertion or a character.
func (p *parser) atom() *node {
	switch c := p.peek(); c {
	case '(':
		p.at++
		return p.group()
	case '[':
		p.at++
		return &node{kind: setNode, set: p.class()}
	case '$':
		p.at++
		return &node{kind: endNode}
	case '^', '.', '*', '+', '?', '{':
		p.refuse("%c", c)
	}
	s := &runeSet{}
	p.member(s, false)
	return &node{kind: setNode, set: s.finish()}
}

// group parses what follows an opening parenthesis.
func (p *parser) group() *node {
	outer := p.isFold
	look := &node{kind: lookNode}
	isLook := true
	switch {
	case p.take("?!"):
		look.isNegative = true
	case p.take("?="):
	case p.take("?:"):
		isLook = false
	case p.take("?i:"):
		isLook, p.isFold = false, true
	case p.peek() == '?':
		p.refuse("a group (?%s", firstRune(p.text[p.at+1:]))
	default:
		isLook = false
	}
	inner := p.alternatives()
	if !p.take(")") {
		p.refuse("a group without )")
	}
	p.isFold = outer
	if isLook {
		look.parts = []*node{inner}
		return look
	}
	return inner
}

func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// repeated parses the quantifier of a part, if it has one.
func (p *parser) repeated(part *node) *node {
	n := &node{kind: repeatNode, parts: []*node{part}, max: -1}
	switch {
	case p.take("*"):
	case p.take("+"):
		n.min = 1
	case p.take("?"):
		n.max = 1
	case p.take("{"):
		n.min, n.max = p.counts()
	default:
		return part
	}
	if part.kind == lookNode || part.kind == endNode {
		p.refuse("a repeated assertion")
	}
	if p.take("+") {
		n.isPossessive = true
	}
	if p.peek() == '?' {
		p.refuse("a lazy quantifier")
	}
	return n
}

// counts parses the counts of {2}, {2,} or {1,3}.
func (p *parser) counts() (lowest, highest int) {
	text, rest, found := strings.Cut(p.text[p.at:], "}")
	low, high, isRange := strings.Cut(text, ",")
	lowest, err := strconv.Atoi(low)
	highest = lowest
	if isRange && high == "" {
		highest = -1
	} else if isRange && err == nil {
		highest, err = strconv.Atoi(high)
	}
	if !found || err != nil || highest >= 0 && highest < lowest {
		p.refuse("a quantifier {%s", text)
	}
	p.at = len(p.text) - len(rest)
	return lowest, highest
}

// class parses what follows an opening bracket.
func (p *parser) class() *runeSet {
	s := &runeSet{isNegated: p.take("^")}
	for first := true; first || p.peek() != ']'; first = false {
		switch {
		case p.at >= len(p.text):
			p.refuse("a class without ]")
		case p.peek() == '[' || strings.HasPrefix(p.text[p.at:], "&&"):
			p.refuse("a class inside a class")
		}
		p.member(s, true)
	}
	p.at++
	return s.finish()
}

// member parses a character, a range of characters or an escape, and adds it to a set.
func (p *parser) member(s *runeSet, inClass bool) {
	first, isRune := p.character(s)
	if !isRune {
		return
	}
	last := first
	rest := p.text[p.at:]
	if inClass && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
		p.at++
		last, isRune = p.character(s)
		if !isRune || last < first {
			p.refuse("a range that does not end in a later character")
		}
	}
	s.addRange(first, last, p.isFold)
}

// escapes are the characters that an escape letter stands for.
var escapes = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v'}

// character parses a character, or an escape. If that is a class, it is added to the set, and isRune is false.
func (p *parser) character(s *runeSet) (r rune, isRune bool) {
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	if r != '\\' {
		return r, true
	}
	r, n = utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	switch table := classEscapes[unicode.ToLower(r)]; {
	case table != nil:
		s.tables = append(s.tables, tableTerm{table, unicode.IsUpper(r)})
		return 0, false
	case r == 'p' || r == 'P':
		s.tables = append(s.tables, tableTerm{p.property(), r == 'P'})
		return 0, false
	case r == 'x' || r == 'u':
		return p.hex(r), true
	case escapes[r] != 0:
		return escapes[r], true
	case unicode.IsLetter(r) || unicode.IsDigit(r) || n == 0:
		p.refuse("the escape \\%c", r)
	}
	return r, true
}

// classEscapes are the classes that a letter stands for, as Unicode defines them.
var classEscapes = map[rune]*unicode.RangeTable{'s': unicode.White_Space, 'd': unicode.Nd}

// property parses the name of a Unicode category or script.
func (p *parser) property() *unicode.RangeTable {
	name := firstRune(p.text[p.at:])
	if p.take("{") {
		var found bool
		name, _, found = strings.Cut(p.text[p.at:], "}")
		if !found {
			p.refuse("a property without }")
		}
		p.at++
	}
	p.at += len(name)
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts} {
		if t := tables[name]; t != nil {
			return t
		}
	}
	p.refuse("the property %s", name)
	return nil
}

// hex parses the code point of \x41, \x{1F600} or \u0041.
func (p *parser) hex(kind rune) rune {
	digits := 2
	if kind == 'u' {
		digits = 4
	}
	text := p.text[p.at:]
	if braced, _, found := strings.Cut(strings.TrimPrefix(text, "{"), "}"); strings.HasPrefix(text, "{") && found {
		text = braced
		p.at += len(braced) + 2
	} else {
		text = text[:min(digits, len(text))]
		p.at += len(text)
	}
	v, err := strconv.ParseInt(text, 16, 32)
	if err != nil {
		p.refuse("the escape \\%c%s", kind, text)
	}
	return rune(v)
}
