package shell

import (
	"slices"
	"strings"
)

// Conditions: [ ... ], [[ ... ]], (( ... )).

// testWords evaluates [[ ... ]], in which nothing is split.
func (e *evaluator) testWords(list []word, at Span) status {
	var words []Word
	for i := range list {
		words = append(words, Word{e.text(&list[i])})
	}
	return e.test(words, at, true)
}

// arithmeticStatus evaluates (( ... )).
func (e *evaluator) arithmeticStatus(n *arithmetic) status {
	text, why := e.calculate(n.expr)
	return status{ok: text != "0", why: why}
}

// test evaluates the words of a test. Operators bind as in bash: ! before && before ||. hasPatterns says that = and !=
// compare with a pattern, as in [[ ]].
func (e *evaluator) test(words []Word, at Span, hasPatterns bool) status {
	t := &testReader{e: e, words: words, at: at, hasPatterns: hasPatterns}
	return t.either()
}

// testReader reads the words of a test.
type testReader struct {
	e     *evaluator
	words []Word
	at    Span
	next  int
	depth int

	hasPatterns bool
}

// peek returns the next word's text; "" at the end.
func (t *testReader) peek() string {
	if t.next >= len(t.words) {
		return ""
	}
	return t.words[t.next].Text()
}

// either reads conditions that are joined by || or -o.
func (t *testReader) either() status {
	left := t.both()
	for t.peek() == "||" || t.peek() == "-o" {
		t.next++
		right := t.both()
		switch {
		case left.why == nil && left.ok:
		case right.why == nil && right.ok:
			left = right
		case left.why == nil:
			left = right
		}
	}
	return left
}

// both reads conditions that are joined by && or -a.
func (t *testReader) both() status {
	left := t.one()
	for t.peek() == "&&" || t.peek() == "-a" {
		t.next++
		right := t.one()
		switch {
		case left.why == nil && !left.ok:
		case right.why == nil && !right.ok:
			left = right
		case left.why == nil:
			left = right
		}
	}
	return left
}

// one reads one condition.
func (t *testReader) one() status {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > maxDepth || t.next >= len(t.words) {
		return status{}
	}
	switch word := t.peek(); {
	case word == "!" && t.next+1 < len(t.words):
		t.next++
		s := t.one()
		s.ok = !s.ok
		return s
	case word == "(":
		t.next++
		s := t.either()
		if t.peek() == ")" {
			t.next++
		}
		return s
	case t.next+2 < len(t.words) && isComparison(t.words[t.next+1].Text()):
		left, op, right := t.words[t.next], t.words[t.next+1].Text(), t.words[t.next+2]
		t.next += 3
		return t.compare(&left, op, &right)
	case len(word) == 2 && word[0] == '-' && t.next+1 < len(t.words):
		operand := t.words[t.next+1]
		t.next += 2
		return t.unary(word, &operand)
	}
	w := t.words[t.next]
	t.next++
	return t.unary("-n", &w)
}

// unary evaluates -z, -n and -v. Tests of files are not known.
func (t *testReader) unary(op string, w *Word) status {
	why := w.Unknown()
	isEmpty := w.Text() == ""
	switch op {
	case "-z", "-n":
		if why != nil && why.Why != noValue { // a variable that nothing has assigned is empty
			return status{why: why}
		}
		takeEmpty(t.e.script, why)
		return status{ok: isEmpty == (op == "-z")}
	case "-v":
		v := t.e.vars[w.Text()]
		_, defined := t.e.defined(w.Text())
		return status{ok: v != nil || defined}
	case "-e", "-f", "-r", "-s":
		if t.e.isGiven(w) {
			return success
		}
	}
	return status{why: &Unknown{Name: t.e.script.lineName(t.at.Start), At: t.at, Values: "true or false",
		Why: "is a test of files, which planc does not look at"}}
}

// isComparison reports whether a word is a binary operator of tests.
func isComparison(op string) bool {
	switch op {
	case "=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		return true
	}
	return false
}

// compare evaluates a binary operator.
func (t *testReader) compare(left *Word, op string, right *Word) status {
	for _, w := range []*Word{left, right} {
		why := w.Unknown()
		other := right
		if w == right {
			other = left
		}
		isEmptyTest := why != nil && why.Why == noValue && other.Unknown() == nil && other.Text() == ""
		if why != nil && !isEmptyTest {
			return status{why: why}
		}
		takeEmpty(t.e.script, why)
	}
	a, b := left.Text(), right.Text()
	switch op {
	case "=", "==":
		return status{ok: t.matches(right, a)}
	case "!=":
		return status{ok: !t.matches(right, a)}
	case "<":
		return status{ok: a < b}
	case ">":
		return status{ok: a > b}
	case "=~":
		return status{why: &Unknown{Name: t.e.script.lineName(t.at.Start), At: t.at, Values: "true or false",
			Why: "compares with a regular expression, which planc does not evaluate"}}
	}
	x, okX := decimal(strings.TrimSpace(a))
	y, okY := decimal(strings.TrimSpace(b))
	if !okX || !okY {
		return status{why: &Unknown{Name: t.e.script.lineName(t.at.Start), At: t.at, Values: "true or false",
			Why: "compares numbers that are none"}}
	}
	return status{ok: compareNumbers(x, op, y)}
}

// matches reports whether a text is that of a word, or matches it as a pattern.
func (t *testReader) matches(w *Word, text string) bool {
	if t.hasPatterns {
		return glob(w.pattern(), text)
	}
	return w.Text() == text
}

// takeEmpty records a variable without a value that a condition takes as empty. why is nil if the value is known.
func takeEmpty(s *Script, why *Unknown) {
	if why == nil || slices.ContainsFunc(s.Empty, func(u Unknown) bool { return u.Name == why.Name }) {
		return
	}
	s.Empty = append(s.Empty, *why)
}

// compareNumbers evaluates -eq and so on.
func compareNumbers(x int64, op string, y int64) bool {
	switch op {
	case "-eq":
		return x == y
	case "-ne":
		return x != y
	case "-lt":
		return x < y
	case "-le":
		return x <= y
	case "-gt":
		return x > y
	}
	return x >= y
}
