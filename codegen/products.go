package codegen

import (
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Products lists, by function and in the IR's text form, the matmuls of a program whose call also computes other ops on
// a target, with these ops below each: beta (C) operands, epilogues, and sums of the operand's rows. It fails as [Go]
// does.
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

// also returns the other ops that a matmul's call computes.
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

// alone returns a matmul without its beta (C) operand.
func (e *emitter) alone(n *ir.Node) *ir.Node {
	if add := e.with[n]; add != nil {
		return other(add, e.from[n]).Def
	}
	return n
}
