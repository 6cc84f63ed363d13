package codegen

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// declarations are what functions refer to and the file therefore declares. They are collected while the functions are
// written.
type declarations struct {
	groups    groupTable
	chains    []chainSpec
	patterns  []ir.Layers              // of local layers
	attention []program.AttentionShape // kinds that a library may compute
	gemms     map[int][]program.GEMM   // kinds of each segment, by its index
}

func newDeclarations(mesh ir.Mesh) *declarations {
	return &declarations{groups: groupTable{mesh: mesh, at: map[string]int{}}, gemms: map[int][]program.GEMM{}}
}

// chain returns the name of the variable of a chain. Equal chains share one.
func (d *declarations) chain(c chainSpec) string {
	i := slices.IndexFunc(d.chains, func(o chainSpec) bool { return reflect.DeepEqual(o, c) })
	if i < 0 {
		i = len(d.chains)
		d.chains = append(d.chains, c)
	}
	return fmt.Sprintf("chain%d", i+1)
}

// cuChains returns the program's chains in the form of package cu.
func (d *declarations) cuChains() []cu.Chain {
	chains := make([]cu.Chain, len(d.chains))
	for i, c := range d.chains {
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

func (d *declarations) attend(a program.AttentionShape) {
	if !slices.Contains(d.attention, a) {
		d.attention = append(d.attention, a)
	}
}

func (d *declarations) multiply(segment int, g program.GEMM) {
	if !slices.Contains(d.gemms[segment], g) {
		d.gemms[segment] = append(d.gemms[segment], g)
	}
}

// pattern returns the name of the variable of a pattern of layers.
func (d *declarations) pattern(l ir.Layers) string {
	if !slices.Contains(d.patterns, l) {
		d.patterns = append(d.patterns, l)
	}
	return patternName(l)
}

// patternName of 5l1f is layers5l1f.
func patternName(l ir.Layers) string { return "layers" + string(l) }

// patternTables declares the patterns that functions use.
func (d *declarations) patternTables() []jen.Code {
	var out []jen.Code
	for _, l := range d.patterns {
		out = append(out, jen.Commentf("%s is the repeating pattern of layers with local attention.", patternName(l)),
			jen.Var().Id(patternName(l)).Op("=").Add(rt("Layers")).ValuesFunc(func(v *jen.Group) {
				for _, local := range l.Pattern() {
					v.Lit(local)
				}
			}))
	}
	return out
}
