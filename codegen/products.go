package codegen

import (
	"strings"

	"github.com/planc-dev/planc/ir"
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
		fused := fuse(f, on, p.Mesh)
		title := "func " + f.Name + "\n"
		for _, n := range fused.nodes {
			also := fused.also(n)
			if len(also) == 0 {
				continue
			}
			b.WriteString(title + "  " + opLine(fused.alone(n)) + "\n")
			for _, m := range also {
				b.WriteString("    " + opLine(m) + "\n")
			}
			title = ""
		}
	})
	return b.String(), nil
}
