package tokenizer

import "unicode/utf8"

// pattern is a compiled regular expression. It matches as backtracking engines do: of the alternatives, the first that
// leads to a match, and quantifiers take as much as possible.
type pattern struct {
	prog  []instruction
	start [utf8.RuneSelf][]int // alternatives that can match text which begins with that character
	all   []int                // all alternatives
	cuts  bool                 // see canCut
}

type opcode int

const (
	opMatch  opcode = iota // the end of the pattern
	opSet                  // one rune of set
	opLoop                 // min to max runes of set, as many as possible
	opChoose               // continue at each of to, in order
	opLook                 // continue if to[0] matches here, or does not
	opEnd                  // continue at the end of the text
)

type instruction struct {
	op           opcode
	set          *runeSet
	min, max     int
	to           []int
	next         int
	isNegative   bool
	isPossessive bool
}

// compilePattern compiles a regular expression.
func compilePattern(text string) (p *pattern, err error) {
	tree, err := parsePattern(text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if bad, ok := recover().(unsupported); ok {
			p, err = nil, refusedPattern(text, bad)
		}
	}()
	p = &pattern{prog: []instruction{{op: opMatch}}}
	for _, alternative := range tree.choices() {
		p.all = append(p.all, p.compile(alternative, 0))
	}
	for c := range p.start {
		for _, pc := range p.all {
			if p.canStart(pc, rune(c)) {
				p.start[c] = append(p.start[c], pc)
			}
		}
	}
	p.cuts = p.canCut(tree)
	return p, nil
}

// choices returns the alternatives of a node.
func (n *node) choices() []*node {
	if n.kind == altNode {
		return n.parts
	}
	return []*node{n}
}

func (p *pattern) add(i instruction) int {
	p.prog = append(p.prog, i)
	return len(p.prog) - 1
}

// compile adds the instructions of a node, which continue at next, and returns the first one.
func (p *pattern) compile(n *node, next int) int {
	switch n.kind {
	case setNode:
		return p.add(instruction{op: opSet, set: n.set, next: next})
	case seqNode:
		for i := len(n.parts) - 1; i >= 0; i-- {
			next = p.compile(n.parts[i], next)
		}
		return next
	case altNode:
		var to []int
		for _, part := range n.parts {
			to = append(to, p.compile(part, next))
		}
		return p.add(instruction{op: opChoose, to: to})
	case lookNode:
		to := []int{p.compile(n.parts[0], 0)}
		return p.add(instruction{op: opLook, to: to, next: next, isNegative: n.isNegative})
	case endNode:
		return p.add(instruction{op: opEnd, next: next})
	}
	return p.compileRepeat(n, next)
}

// compileRepeat compiles a repetition of a set or, at most once, of any other part.
func (p *pattern) compileRepeat(n *node, next int) int {
	part := n.parts[0]
	for part.kind == seqNode && len(part.parts) == 1 {
		part = part.parts[0]
	}
	if part.kind == setNode {
		return p.add(instruction{op: opLoop, set: part.set, min: n.min, max: n.max, next: next,
			isPossessive: n.isPossessive})
	}
	if n.min != 0 || n.max != 1 || n.isPossessive {
		panic(unsupported("a repeated group"))
	}
	return p.add(instruction{op: opChoose, to: []int{p.compile(part, next), next}})
}

// canStart reports whether the instructions from pc on may match text that begins with an ASCII character.
func (p *pattern) canStart(pc int, c rune) bool {
	switch i := &p.prog[pc]; i.op {
	case opSet:
		return i.set.has(c)
	case opLoop:
		return i.set.has(c) || i.min == 0 && p.canStart(i.next, c)
	case opChoose:
		for _, to := range i.to {
			if p.canStart(to, c) {
				return true
			}
		}
		return false
	case opLook:
		return p.canStart(i.next, c)
	}
	return false
}

// match returns the end of the match that begins at a position, or -1. Empty matches do not count.
func (p *pattern) match(text []byte, at int) int {
	from := p.all
	if c := text[at]; c < utf8.RuneSelf {
		from = p.start[c]
	}
	for _, pc := range from {
		if end := p.run(pc, text, at); end > at {
			return end
		}
	}
	return -1
}

// run matches from an instruction and a position on, and returns the end of the match, or -1.
func (p *pattern) run(pc int, text []byte, at int) int {
	for {
		i := &p.prog[pc]
		switch i.op {
		case opMatch:
			return at
		case opSet:
			r, n := decodeRune(text, at)
			if n == 0 || !i.set.has(r) {
				return -1
			}
			at += n
		case opLoop:
			return p.loop(i, text, at)
		case opChoose:
			for _, to := range i.to {
				if end := p.run(to, text, at); end >= 0 {
					return end
				}
			}
			return -1
		case opLook:
			if (p.run(i.to[0], text, at) >= 0) == i.isNegative {
				return -1
			}
		case opEnd:
			if at < len(text) {
				return -1
			}
		}
		pc = i.next
	}
}

// loop matches as many runes of a set as possible, and gives back one after the other until the rest matches.
func (p *pattern) loop(i *instruction, text []byte, at int) int {
	count, end := 0, at
	for count != i.max {
		r, n := decodeRune(text, end)
		if n == 0 || !i.set.has(r) {
			break
		}
		end += n
		count++
	}
	for ; count >= i.min; count-- {
		if done := p.run(i.next, text, end); done >= 0 || i.isPossessive {
			return done
		}
		if end > at {
			_, n := utf8.DecodeLastRune(text[at:end])
			end -= n
		}
	}
	return -1
}

// decodeRune returns the rune at a position and its length, which is 0 at the end.
func decodeRune(text []byte, at int) (rune, int) {
	if at >= len(text) {
		return 0, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRune(text[at:])
}
