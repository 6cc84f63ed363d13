package codegen

import (
	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// batchFields are the runtime's names of the batch inputs.
var batchFields = map[string]string{ir.Tokens: "Tokens", ir.Labels: "Labels", ir.Mask: "Mask", ir.Types: "Types",
	ir.Pixels: "Pixels"}

// inputs are where a stage's batch inputs begin, in bytes from the start of the arena.
func (g *generator) inputs(s *ir.Stage) jen.Code {
	d := jen.Dict{}
	for _, in := range g.p.BatchInputs() {
		d[jen.Id(batchFields[in.Name])] = jen.Lit(s.Region(ir.RegionBatch).Offset + in.Offset)
	}
	return rt("Inputs").Values(d)
}

// batchTable says what the data loader fills. All inputs are [batch, seq], and pixels further a patch.
func (g *generator) batchTable() jen.Code {
	in := g.p.BatchInputs()
	rows, seq := in[0].Type.Local(g.p.Mesh)[0], in[0].Type.Dims[1]
	var atoms []ir.Axis
	if g.p.Mesh.Has("dp") {
		atoms = g.p.Mesh.Expand([]ir.Axis{"dp"})
	}
	lit := func(n int) jen.Code { return jen.Lit(n) }
	d := jen.Dict{
		jen.Id("MicroBatch"): lit(rows), jen.Id("MicroBatches"): lit(g.p.Plan.MicroBatches),
		jen.Id("SeqLen"):   lit(seq.Size),
		jen.Id("Replicas"): lit(g.p.Plan.DP), jen.Id("ReplicaAxes"): axisList(atoms),
		jen.Id("GlobalBatch"): lit(rows * g.p.Plan.MicroBatches * g.p.Plan.DP),
	}
	if len(seq.Axes) > 0 {
		d[jen.Id("SeqAxes")] = axisList(g.p.Mesh.Expand(seq.Axes))
		if isZigzag(seq) {
			d[jen.Id("Zigzag")] = lit(g.p.Mesh.Ranks(seq.Axes[:1]))
		}
	}
	for _, x := range in {
		if x.Name == ir.Types {
			d[jen.Id("Types")] = jen.True()
		}
		if patch, ok := x.Type.Extent(ir.Patch); ok {
			d[jen.Id("Patch")] = lit(patch.Size)
		}
	}
	return rt("BatchLayout").Values(d)
}
