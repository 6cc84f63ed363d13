package fusion

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// normGradients lets the kernel that computes the gradient of a norm's input also compute those of its gain and its
// bias, on a GPU. It returns the ops without those sums.
func (u *fuser) normGradients(nodes []*ir.Node) []*ir.Node {
	for _, g := range u.f.NormGradients(u.mesh) {
		if !slices.Contains(nodes, g.Node) || !slices.Contains(nodes, g.Gain) {
			continue
		}
		if !slices.Contains(nodes, g.Bias) { // a matmul computes it
			g.Bias = nil
		}
		nodes = slices.DeleteFunc(nodes, func(n *ir.Node) bool { return slices.Contains(g.Sums(), n) })
		u.edit(g.Node).NormGradient = &g
	}
	return nodes
}
