package codegen

import (
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Products are, by function and in the IR's text, the products of a program that do other ops too in one call on a
// target, and these ops below each, as a fused group has its own: what a product begins from, what it ends in, the sum
// of its operand's rows. It fails as [Go] does.
func Products(p *ir.Program, on Target) (string, error) {
	g := &generator{Input: Input{Program: p, Target: on}, p: p, groups: map[string]int{}}
	if err := g.ready(); err != nil {
		return "", err
	}
	var b strings.Builder
	g.each(func(id int, s *ir.Segment, f *ir.Func) {
		e := g.emitter(id, s, f)
		title := "func " + f.Name + "\n"
		for _, n := range e.epilogue(f.Nodes) {
			also := e.also(n)
			if len(also) == 0 {
				continue
			}
			b.WriteString(title + "  " + opLine(e.alone(n)) + "\n")
			for _, m := range also {
				b.WriteString("    " + opLine(m) + "\n")
			}
			title = ""
		}
	})
	return b.String(), nil
}

// also are the other ops that a product's call does.
func (e *emitter) also(n *ir.Node) (ops []*ir.Node) {
	if add := e.with[n]; add != nil {
		ops = append(ops, add)
	}
	if then := e.then[n]; then != nil {
		ops = append(ops, only(then))
	}
	if sum := e.sum[n]; sum != nil {
		ops = append(ops, sum)
	}
	return ops
}

// alone is a product as it is without what it begins from.
func (e *emitter) alone(n *ir.Node) *ir.Node {
	if add := e.with[n]; add != nil {
		return other(add, e.from[n]).Def
	}
	return n
}
