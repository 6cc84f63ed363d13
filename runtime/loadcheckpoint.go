package runtime

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// fill reads a checkpoint into the arenas. It must be of this model and optimizer, but may be of any plan.
func (r *run) fill(c *ckpt.Checkpoint) error {
	x := c.Manifest.Extra
	if was := x["optimizer"]; was != "" && was != r.p.Optim.String() {
		return exit.Errorf(exit.Input, "its optimizer is %s, but the program's is %s", was, r.p.Optim)
	}
	if err := r.fillParams(c); err != nil {
		return err
	}
	return r.fillMoments(c)
}

// noMomentsExtra is the key by which a checkpoint says that its program had no optimizer state.
const noMomentsExtra = "moments"

// fillMoments reads the optimizer state. Only one of program and checkpoint may have SGD's momentum. A program without
// a buffer ignores the checkpoint's, because its momentum is 0. A program with a buffer starts at 0, as PyTorch does,
// if the checkpoint has none.
func (r *run) fillMoments(c *ckpt.Checkpoint) error {
	kinds := r.p.momentKinds()
	_, absent := c.Manifest.Extra[noMomentsExtra]
	switch {
	case !r.p.HasMoments():
		return nil
	case absent:
		for _, k := range r.crew.mine {
			for _, m := range kinds {
				g := m.region(&k.Stage.Arena)
				clear(k.Arena[g.Offset : g.Offset+g.Size])
			}
		}
		return nil
	}
	return r.fillFrom(c, optimizerFile, kinds...)
}

// fillParams reads a checkpoint's parameters if it is of this model.
func (r *run) fillParams(c *ckpt.Checkpoint) error {
	x := c.Manifest.Extra
	if was, is := x["model"], r.p.Model.Hash; was != "" && is != "" && was != is {
		return exit.Errorf(exit.Input, "it is a checkpoint of another model (%s of job %s; the program's is %s of job "+
			"%s)%s", program.ShortHash(was), x["name"], program.ShortHash(is), r.p.Name, r.shapeDifferences(c))
	}
	return r.fillFrom(c, modelFile, r.p.weightKinds()...)
}

// shapeDifferences lists the tensors of another model's checkpoint that have other shapes than the program's, such as
// learned positions of another length. If there are none, it says that the shapes may agree.
func (r *run) shapeDifferences(c *ckpt.Checkpoint) string {
	const alike = ", although their tensors may have the same shapes"
	if !r.team.IsFirst() {
		return alike
	}
	f, err := c.File(modelFile)
	if err != nil { // the error of the other model is more important than that of the file
		return alike
	}
	defer f.Close()
	was := map[string][]int64{}
	for _, t := range f.Tensors() {
		was[t.Name] = t.Shape
	}
	var words []string
	for _, t := range tensors(r.p, r.crew.ranks[0].Coord) {
		name := t.name + r.p.weightKind().suffix
		if shape, want := was[name], paramShape(t.param); shape != nil && !slices.Equal(shape, want) {
			words = append(words, fmt.Sprintf("%s has shape %v in the checkpoint, but the program needs %v", name,
				shape, want))
		}
	}
	if len(words) == 0 {
		return alike
	}
	return ": " + firstNames(words)
}

// fillFrom reads the tensors of some kinds from a file of the checkpoint, which must not hold others.
func (r *run) fillFrom(c *ckpt.Checkpoint, name string, kinds ...kind) error {
	if !r.team.IsFirst() {
		return r.loadKinds(kinds, nil)
	}
	f, err := c.File(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.checkTensorNames(f.Tensors(), kinds); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.loadKinds(kinds, f.Tensor)
}

// loadKinds loads the tensors of each kind.
func (r *run) loadKinds(kinds []kind, find func(name string) (ckpt.Tensor, *io.SectionReader, error)) (err error) {
	for _, k := range kinds {
		if r.p.Elem == F64 {
			err = load[float64](r.crew, k, find)
		} else {
			err = load[float32](r.crew, k, find)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTensorNames refuses tensors that the program does not have: they are of another model.
func (r *run) checkTensorNames(saved []ckpt.Tensor, kinds []kind) error {
	first := r.crew.ranks[0]
	own := map[string]bool{}
	for _, t := range tensors(r.p, first.Coord) {
		for _, k := range kinds {
			own[t.name+k.suffix] = true
		}
	}
	return checkUnknownTensors(saved, func(name string) bool { return own[name] })
}

// checkUnknownTensors refuses tensors with unknown names.
func checkUnknownTensors(saved []ckpt.Tensor, known func(name string) bool) error {
	var names []string
	for _, t := range saved {
		if !known(t.Name) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return exit.Errorf(exit.Input, "it has tensors that the program does not have: %s; it is of another model",
		firstNames(names))
}

// firstNames lists the first names and how many more there are.
func firstNames(names []string) string {
	more := ""
	if n := len(names) - 3; n > 0 {
		names, more = names[:3], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
