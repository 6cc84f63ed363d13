package codegen

import (
	"fmt"
	"io"

	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/ir"
)

// CUDA writes the kernels of a program's fused groups as CUDA C++: chain1, chain2 and so on, the groups that [Go]
// launches under these names where the target is a GPU. It fails if an op has no kernel yet.
func CUDA(w io.Writer, in Input) error {
	in.Target = GPU
	g := &generator{Input: in, p: in.Program, groups: map[string]int{}}
	if err := g.ready(); err != nil {
		return err
	}
	g.functions()
	return cu.Print(w, g.arithmetic() == ir.F64, g.cuChains())
}

// cuChains are the program's chains as package cu has them.
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
