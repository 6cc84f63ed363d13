package shell

import (
	"regexp"
	"strconv"
	"strings"
)

// calculate evaluates an arithmetic expression, or returns why its value is not known.
func (e *expander) calculate(sp Span) (string, *Unknown) {
	c := &calculator{e: e, text: string(e.script.source[sp.Start:sp.End]), base: sp.Start, whole: sp}
	n := c.ternary()
	c.blanks()
	if c.why == nil && c.pos < len(c.text) {
		c.fail("is arithmetic that planc does not evaluate")
	}
	if c.why != nil {
		for _, m := range assignments.FindAllStringSubmatch(c.text, -1) {
			name := m[1] + m[2]
			why := *c.why
			why.Name, why.Why = name, "is changed by arithmetic that planc does not evaluate"
			e.forget(name, &why)
		}
	}
	return strconv.FormatInt(n, 10), c.why
}

// assignments are the variables that arithmetic changes: X=1, X+=1, X++, ++X.
var assignments = regexp.MustCompile(`([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?:[^=]|$))|(?:\+\+|--)\s*([A-Za-z_]\w*)`)

// calculator reads an arithmetic expression.
type calculator struct {
	e     *expander
	text  string
	base  int // offset of text in the source
	whole Span
	pos   int
	depth int
	why   *Unknown
}

// fail makes the result unknown.
func (c *calculator) fail(why string) int64 {
	if c.why == nil {
		c.why = &Unknown{Name: c.e.script.lineName(c.base), At: c.whole, Why: why}
	}
	c.pos = len(c.text)
	return 0
}

func (c *calculator) blanks() {
	for c.pos < len(c.text) && (isBlank(c.text[c.pos]) || c.text[c.pos] == '\\') {
		c.pos++
	}
}

// take passes an operator if it comes next.
func (c *calculator) take(op string) bool {
	c.blanks()
	if !strings.HasPrefix(c.text[c.pos:], op) {
		return false
	}
	c.pos += len(op)
	return true
}

// ternary reads a ? b : c.
func (c *calculator) ternary() int64 {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxDepth {
		return c.fail("is arithmetic that planc does not evaluate")
	}
	cond := c.binary(0)
	if !c.take("?") {
		return cond
	}
	yes := c.ternary()
	if !c.take(":") {
		return c.fail("is arithmetic that planc does not evaluate")
	}
	no := c.ternary()
	if cond != 0 {
		return yes
	}
	return no
}

// levels are the binary operators, the loosest first. Longer ones precede their prefixes.
var levels = [][]string{{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"},
	{"+", "-"}, {"*", "/", "%"}}

// binary reads operators of a level and tighter ones.
func (c *calculator) binary(level int) int64 {
	if level == len(levels) {
		return c.power()
	}
	left := c.binary(level + 1)
	for {
		op := c.operator(level)
		if op == "" {
			return left
		}
		left = c.apply(left, op, c.binary(level+1))
	}
}

// operator passes an operator of a level; "" if none comes next.
func (c *calculator) operator(level int) string {
	c.blanks()
	rest := c.text[c.pos:]
	for _, op := range levels[level] {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		next := byte(0)
		if len(rest) > len(op) {
			next = rest[len(op)]
		}
		isLonger := len(op) == 1 && (next == op[0] && strings.Contains("|&*<>+-", op) || next == '=' && op != "<" &&
			op != ">")
		if isLonger {
			continue
		}
		c.pos += len(op)
		return op
	}
	return ""
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// apply evaluates a binary operator.
func (c *calculator) apply(a int64, op string, b int64) int64 {
	switch op {
	case "||":
		return bit(a != 0 || b != 0)
	case "&&":
		return bit(a != 0 && b != 0)
	case "|":
		return a | b
	case "^":
		return a ^ b
	case "&":
		return a & b
	case "==":
		return bit(a == b)
	case "!=":
		return bit(a != b)
	case "<=":
		return bit(a <= b)
	case ">=":
		return bit(a >= b)
	case "<":
		return bit(a < b)
	case ">":
		return bit(a > b)
	case "<<":
		return a << (uint64(b) & 63)
	case ">>":
		return a >> (uint64(b) & 63)
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	if b == 0 || b == -1 { // -1: the smallest number has no negative
		if b == 0 && c.why == nil {
			return c.fail("divides by 0")
		}
		if op == "%" {
			return 0
		}
		return -a
	}
	if op == "%" {
		return a % b
	}
	return a / b
}

// power reads a ** b.
func (c *calculator) power() int64 {
	base := c.unary()
	if !c.take("**") {
		return base
	}
	exponent := c.power()
	const limit = 64
	if exponent < 0 || exponent > limit {
		return c.fail("is arithmetic that planc does not evaluate")
	}
	out := int64(1)
	for range exponent {
		out *= base
	}
	return out
}

// unary reads signs, parentheses, numbers and variables.
func (c *calculator) unary() int64 {
	c.depth++
	defer func() { c.depth-- }()
	c.blanks()
	switch {
	case c.depth > maxDepth || c.pos >= len(c.text):
		return c.fail("is arithmetic that planc does not evaluate")
	case c.changesVariable():
		return c.fail("is arithmetic that planc does not evaluate")
	case c.take("-"):
		return -c.unary()
	case c.take("+"):
		return c.unary()
	case c.take("!"):
		return bit(c.unary() == 0)
	case c.take("~"):
		return ^c.unary()
	case c.take("("):
		n := c.ternary()
		if !c.take(")") {
			return c.fail("is arithmetic that planc does not evaluate")
		}
		return n
	}
	return c.operand()
}

// changesVariable reports whether ++NAME or --NAME comes next.
func (c *calculator) changesVariable() bool {
	rest := c.text[c.pos:]
	if !strings.HasPrefix(rest, "++") && !strings.HasPrefix(rest, "--") {
		return false
	}
	rest = strings.TrimLeft(rest[2:], " \t")
	return rest != "" && isNameByte(rest[0], true)
}

// operand reads a number or a variable.
func (c *calculator) operand() int64 {
	start := c.pos
	if c.text[c.pos] >= '0' && c.text[c.pos] <= '9' {
		for c.pos < len(c.text) && isNameByte(c.text[c.pos], false) {
			c.pos++
		}
		n, err := strconv.ParseInt(c.text[start:c.pos], 0, 64)
		if err != nil {
			return c.fail("is arithmetic that planc does not evaluate")
		}
		return n
	}
	if isNameByte(c.text[c.pos], true) {
		for c.pos < len(c.text) && isNameByte(c.text[c.pos], false) {
			c.pos++
		}
		name := c.text[start:c.pos]
		return c.variable(&part{kind: variable, quoted: true, span: Span{c.base + start, c.base + c.pos},
			expansion: &expansion{name: name}})
	}
	if c.text[c.pos] == '$' || c.text[c.pos] == '"' {
		return c.expansion()
	}
	return c.fail("is arithmetic that planc does not evaluate")
}

// expansion reads $NAME, ${NAME...} or a quoted one.
func (c *calculator) expansion() int64 {
	s := c.e.script
	counted := *s // the names have been counted when the script was parsed
	counted.uses = map[string]int{}
	p := newParser(&counted, c.base+c.pos, c.whole.End)
	w := word{}
	p.part(&w, "", false)
	if p.pos == c.base+c.pos || len(w.parts) == 0 {
		return c.fail("is arithmetic that planc does not evaluate")
	}
	c.pos = p.pos - c.base
	return c.number(Word{c.e.text(&w)})
}

// variable returns a variable's number.
func (c *calculator) variable(p *part) int64 {
	f := &fieldList{whole: true}
	c.e.part(p, f)
	return c.number(Word{f.current()})
}

// number returns a word's number.
func (c *calculator) number(w Word) int64 {
	if why := w.Unknown(); why != nil {
		if c.why == nil {
			c.why = why
		}
		return 1
	}
	text := strings.TrimSpace(w.Text())
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return c.fail("is arithmetic with a text")
	}
	return n
}
