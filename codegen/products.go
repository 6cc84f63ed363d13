package codegen

import (
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
)

// Products lists, by function and in the IR's text form, the matmuls of a program whose call also computes other ops on
// a target, with these ops below each: beta (C) operands, epilogues, and sums of the operand's rows. It fails as [Go]
// does.
func Products(p *ir.Program, on Target) (string, error) {
	if err := supported(p); err != nil {
		return "", err
	}
	var b strings.Builder
	eachFunc(p, func(_ int, _ *ir.Segment, f *ir.Func) {
		calls := fusion.Of(f, on.gpu(), p.Mesh)
		title := "func " + f.Name + "\n"
		for _, n := range calls.Nodes {
			call := calls.Call(n)
			others := call.Ops()
			if len(others) == 0 {
				continue
			}
			b.WriteString(title + "  " + opLine(call.Alone(n)) + "\n")
			for _, m := range others {
				b.WriteString("    " + opLine(m) + "\n")
			}
			title = ""
		}
	})
	return b.String(), nil
}
