package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Recomputed is [Compile] with [Options].Layers of a plan that recomputes blocks by themselves, put together from
// plain: the program that Compile made so of the plan that differs in recomputing nothing. What blocks do again is
// compiled, all else is plain's: neither program may be changed while the other is in use. An error is Compile's.
func Recomputed(m *ir.Model, plan ir.Plan, plain *ir.Program) (*ir.Program, error) {
	p, err := logical(m, plan, plain)
	if err != nil {
		return nil, err
	}
	out := *plain
	out.Plan, out.Saved, out.Model = plan, nil, &ir.Model{Name: plain.Model.Name}
	r := &reader{p, map[*ir.Node]*read{}}
	for _, s := range plain.Model.Segments {
		own := *s
		out.Model.Segments = append(out.Model.Segments, &own)
		out.Saved = append(out.Saved, savedOf(plain, s.Name))
		of := p.Model.Segment(s.Name)
		if of == nil {
			continue
		}
		own.Remat = of.Remat
		if own.Remat == nil {
			continue
		}
		if err := partitionRemat(r, own.Remat, s.Passed); err != nil {
			return nil, fmt.Errorf("pass partition: %w", err)
		}
		for _, w := range own.Forward.Weights() {
			if err := sameGradient(p, &own, w, gradAxes(p.Mesh, s, w.Name)); err != nil {
				return nil, fmt.Errorf("pass zero: %w", err)
			}
		}
		fuseSegment(own.Remat)
		out.Saved = append(out.Saved, placeSaved(p, own.Remat))
		for _, f := range own.Remat.Funcs() {
			placeTemps(p, f)
		}
	}
	if err := pipeline(&out); err != nil {
		return nil, fmt.Errorf("pass pipeline: %w", err)
	}
	return &out, nil
}

// logical is the program of a plan's blocks before they are partitioned, on the mesh and in the layouts of another's.
func logical(m *ir.Model, plan ir.Plan, plain *ir.Program) (*ir.Program, error) {
	blocks := &ir.Model{Name: m.Name}
	for _, s := range m.Segments {
		if isBlock(s) {
			blocks.Segments = append(blocks.Segments, s)
		}
	}
	p, err := Start(blocks, plan, plain.Recipe)
	if err != nil {
		return nil, err
	}
	for _, pass := range All {
		if pass.Name == "partition" {
			break
		}
		if err := blame(pass, p); err != nil {
			return nil, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
	}
	p.Mesh, p.Layouts, p.Stream = plain.Mesh, plain.Layouts, plain.Stream
	return p, nil
}

// savedOf is what a segment of a program saves.
func savedOf(p *ir.Program, segment string) ir.SavedPart {
	return p.Saved[slices.IndexFunc(p.Saved, func(s ir.SavedPart) bool { return s.Segment == segment })]
}
