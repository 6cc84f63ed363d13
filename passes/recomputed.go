package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Recomputed is [Compile] with [Options].Layers for a plan that recomputes blocks by themselves. It builds on plain,
// the program that Compile made in this way of the same plan without recomputation. It compiles the recomputed
// functions and shares all else with plain: neither program may be changed while the other is in use. An error is
// Compile's.
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
		segment := p.Model.Segment(s.Name)
		if segment == nil {
			continue
		}
		own.Remat = segment.Remat
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

// logical returns the program of a plan's blocks before they are partitioned, with the mesh and the layouts of plain.
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

// savedOf returns what a segment of a program saves.
func savedOf(p *ir.Program, segment string) ir.SavedPart {
	return p.Saved[slices.IndexFunc(p.Saved, func(s ir.SavedPart) bool { return s.Segment == segment })]
}
