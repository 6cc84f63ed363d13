package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// cutOwner splits the name of the parameter that a tied one is.
func cutOwner(tied string) (segment, param string) {
	segment, param, _ = strings.Cut(tied, ".")
	return segment, param
}

// run is a layer's run of a class of parameters, as a block function refers to it: its own layer's, or the first
// layer's of another segment.
type run struct{ segment, class int }

// runs are the runs that a segment's functions refer to.
func (g *generator) runs(s *ir.Segment) []run {
	var out []run
	for _, w := range s.Forward.Weights() {
		if r, _ := g.runOf(s, w); !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// runOf is the run in which a parameter of segment s lies, and where: a tied one has a slot of its own where its owner
// is on another stage.
func (g *generator) runOf(s *ir.Segment, w *ir.Value) (run, int) {
	segment, name := s.Name, w.Name
	slot, ok := g.p.Slot(segment, name)
	if !ok && w.Param.Tied != "" {
		segment, name = cutOwner(w.Param.Tied)
		slot, ok = g.p.Slot(segment, name)
	}
	if !ok {
		panic(fmt.Sprintf("codegen: parameter %s.%s has no slot", segment, name))
	}
	return run{g.segmentID(segment), slot.Class}, slot.Offset
}

func (g *generator) segmentID(name string) int {
	return slices.IndexFunc(g.p.Model.Segments, func(s *ir.Segment) bool { return s.Name == name })
}

// ref is the index of the run in which a parameter of segment s lies, and its offset there in elements.
func (g *generator) ref(s *ir.Segment, name string) (ref, offset int) {
	for _, w := range s.Forward.Weights() {
		if w.Name == name {
			r, offset := g.runOf(s, w)
			return slices.Index(g.runs(s), r), offset
		}
	}
	panic("codegen: no parameter " + name)
}

// segmentTable lists the segments with their functions.
func (g *generator) segmentTable() jen.Code {
	return jen.Index().Add(rt("Segment")).ValuesFunc(func(v *jen.Group) {
		for _, s := range g.p.Model.Segments {
			d := jen.Dict{jen.Id("Name"): jen.Lit(s.Name), jen.Id("Input"): jen.Lit(len(s.Backward.Outputs) > 0),
				jen.Id("Output"): jen.Lit(len(s.Forward.Outputs) > 0)}
			if g.p.Uses(s) {
				d[jen.Id("Forward")], d[jen.Id("Backward")] = jen.Id(funcName(s.Forward)), jen.Id(funcName(s.Backward))
				if s.Weights != nil {
					d[jen.Id("Weights")], d[jen.Id("Gradient")] = jen.Id(funcName(s.Weights)),
						jen.Lit(g.p.KeepsGradient(s.Name))
				}
			}
			if v := s.Remat; v != nil && g.p.Uses(v) {
				d[jen.Id("RematForward")], d[jen.Id("RematBackward")] = jen.Id(funcName(v.Forward)),
					jen.Id(funcName(v.Backward))
			}
			if s.Logits != nil {
				d[jen.Id("Logits")] = jen.Id(funcName(s.Logits))
			}
			d[jen.Id("Refs")] = jen.Index().Add(rt("Ref")).ValuesFunc(func(v *jen.Group) {
				for _, r := range g.runs(s) {
					v.Values(jen.Dict{jen.Id("Segment"): jen.Lit(r.segment), jen.Id("Class"): jen.Lit(r.class)})
				}
			})
			if w := g.writtenTable(s); w != nil {
				d[jen.Id("FirstWrites")] = w
			}
			v.Values(d)
		}
	})
}

// ends are the groups of the step's ends.
func (g *generator) ends(d jen.Dict) {
	d[jen.Id("Tokens")] = g.groupCode(g.p.Begin.Nodes[0].Attr.Axes)
	d[jen.Id("Loss")] = g.groupCode(g.update(ir.OpLossReduce).Attr.Axes)
	d[jen.Id("World")] = g.groupCode(g.update(ir.OpGradNorm).Attr.Axes)
}

// update is the node of the step's end that does op.
func (g *generator) update(op ir.Op) *ir.Node {
	for _, n := range g.p.Stages[0].Update.Nodes {
		if n.Op == op {
			return n
		}
	}
	panic(fmt.Sprintf("codegen: the step's end has no %v", op))
}

// stageTable lists what each stage has of its own.
func (g *generator) stageTable() jen.Code {
	return jen.Index().Add(rt("Stage")).ValuesFunc(func(v *jen.Group) {
		for i := range g.p.Stages {
			s := &g.p.Stages[i]
			v.Values(jen.Dict{
				jen.Id("Gather"): jen.Lit(s.Gather), jen.Id("Scatter"): jen.Lit(s.Scatter),
				jen.Id("Schedule"): jen.Lit(ir.ScheduleText(s.Schedule)), jen.Id("Chunks"): g.chunkTable(s),
				jen.Id("Buckets"): g.bucketTable(s), jen.Id("Arena"): g.arenaTable(s), jen.Id("Inputs"): g.inputs(s),
			})
		}
	})
}

func (g *generator) chunkTable(s *ir.Stage) jen.Code {
	return jen.Index().Add(rt("Chunk")).ValuesFunc(func(v *jen.Group) {
		for _, c := range s.Chunks {
			runs := jen.Index().Add(rt("LayerRun")).ValuesFunc(func(v *jen.Group) {
				for _, r := range c.Runs {
					v.Add(inline("Segment", g.segmentID(r.Segment), "From", r.From, "Count", r.Count, "Offset",
						r.Offset, "Stride", r.Stride,
						"Remat", r.Remat, "Split", r.Split, "Every", r.Every, "Inner", r.Inner))
				}
			})
			v.Values(jen.Dict{jen.Id("Index"): jen.Lit(c.Index), jen.Id("Offset"): jen.Lit(c.Offset),
				jen.Id("Size"):    jen.Lit(c.Size),
				jen.Id("Buffers"): jen.Lit(c.Buffers), jen.Id("Runs"): runs})
		}
	})
}

// arenaTable is a stage's arena, of a CPU's rank with its scratch behind it.
func (g *generator) arenaTable(s *ir.Stage) jen.Code {
	regions, size := slices.Clone(s.Arena), s.ArenaBytes()
	if n := g.p.Scratch(); n > 0 && !g.gpu() {
		regions = append(regions, ir.ArenaRegion{Name: ir.RegionScratch, Offset: size, Size: n})
		size += n
	}
	d := jen.Dict{jen.Id("Size"): jen.Lit(size)}
	for _, r := range regions {
		d[jen.Id(strings.ToUpper(r.Name[:1])+r.Name[1:])] = rt("Region").Add(inline("Offset", r.Offset, "Size", r.Size))
	}
	return rt("Arena").Values(d)
}

func (g *generator) bucketTable(s *ir.Stage) jen.Code {
	return jen.Index().Add(rt("Bucket")).ValuesFunc(func(v *jen.Group) {
		for _, b := range s.Buckets {
			c := g.p.Classes[b.Class]
			count := append(slices.Clone(c.Repeat), g.p.Mesh.Expand(c.Copies())...)
			v.Values(jen.Dict{
				jen.Id("Class"): jen.Lit(b.Class), jen.Id("Offset"): jen.Lit(b.Offset),
				jen.Id("Elems"): jen.Lit(b.Elems), jen.Id("State"): jen.Lit(b.State),
				jen.Id("Reduce"): g.groupCode(c.Reduce), jen.Id("Sum"): g.groupCode(c.Replicas),
				jen.Id("Shard"):  g.groupCode(c.Shard),
				jen.Id("Params"): jen.Lit(b.Params(g.p.Plan)), jen.Id("Grads"): jen.Lit(b.Grads(g.p.Plan)),
				jen.Id("ShardedGrads"): jen.Lit(c.Each), jen.Id("ShardedParams"): jen.Lit(c.Fetch),
				jen.Id("SharedByEnds"):   jen.Lit(c.Ends),
				jen.Id("ReplicatedOver"): axisList(count), jen.Id("Pieces"): g.pieceTable(b),
			})
		}
	})
}

func (g *generator) pieceTable(b ir.Bucket) jen.Code {
	return jen.Index().Add(rt("Piece")).ValuesFunc(func(v *jen.Group) {
		for _, c := range b.Pieces {
			v.Add(inline("Segment", g.segmentID(c.Segment), "Layer", c.Layer, "Offset", c.Offset))
		}
	})
}

// inline is a composite literal's body in one line: names, and numbers or flags, in turn, without those that are 0 or
// false.
func inline(fields ...any) jen.Code {
	return jen.ValuesFunc(func(v *jen.Group) {
		for i := 0; i < len(fields); i += 2 {
			if n := fields[i+1]; n != 0 && n != false {
				v.Id(fields[i].(string)).Op(":").Lit(n)
			}
		}
	})
}

// places are where a parameter lies in its layer's run: its own first, then those of parameters that are it.
func (g *generator) places(s *ir.Segment, w *ir.Value) jen.Code {
	return jen.Index().Add(rt("Place")).ValuesFunc(func(v *jen.Group) {
		add := func(segment, param string) {
			if slot, ok := g.p.Slot(segment, param); ok {
				v.Add(inline("Segment", g.segmentID(segment), "Class", slot.Class, "Offset", slot.Offset))
			}
		}
		add(s.Name, w.Name)
		for _, o := range g.p.Model.Segments {
			for _, t := range o.Forward.Weights() {
				if t.Param.Tied == s.Name+"."+w.Name {
					add(o.Name, t.Name)
				}
			}
		}
	})
}
