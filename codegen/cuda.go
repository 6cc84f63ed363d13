package codegen

import (
	"fmt"
	"io"

	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/ir"
)

// CUDA writes the kernels of a program's fused ops as CUDA C++: chain1, chain2 and so on. [Go] launches them by these
// names if the target is a GPU. It fails if an op has no kernel yet.
func CUDA(w io.Writer, in Input) error {
	in.Target = GPU
	g := &generator{Input: in, p: in.Program, groups: map[string]int{}}
	if err := g.ready(); err != nil {
		return err
	}
	g.functions()
	return cu.Print(w, g.arithmetic() == ir.F64, g.cuChains())
}

// cuChains returns the program's chains in the form of package cu.
func (g *generator) cuChains() []cu.Chain {
	chains := make([]cu.Chain, len(g.chains))
	for i, c := range g.chains {
		chains[i].Name = fmt.Sprintf("chain%d", i+1)
		for _, o := range c.Operands {
			chains[i].Operands = append(chains[i].Operands, cu.Operand(o))
		}
		for _, l := range c.Links {
			chains[i].Links = append(chains[i].Links, cu.Link(l))
		}
	}
	return chains
}
