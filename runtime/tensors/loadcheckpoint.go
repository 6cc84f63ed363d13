package tensors

import (
	"fmt"
	"io"
	"slices"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// Load reads a checkpoint into the arenas. It must be of this model and optimizer, but may be of any plan.
func (s *Stores) Load(c *ckpt.Checkpoint) error {
	x := c.Manifest.Extra
	if was := x["optimizer"]; was != "" && was != s.program().Optim.String() {
		return exit.Errorf(exit.Input, "its optimizer is %s, but the program's is %s", was, s.program().Optim)
	}
	if err := s.LoadParams(c); err != nil {
		return err
	}
	return s.loadMoments(c)
}

// NoMomentsExtra is the key by which a checkpoint says that its program had no optimizer state.
const NoMomentsExtra = "moments"

// loadMoments reads the optimizer state. Only one of program and checkpoint may have SGD's momentum. A program without
// a buffer ignores the checkpoint's, because its momentum is 0. A program with a buffer starts at 0, as PyTorch does,
// if the checkpoint has none.
func (s *Stores) loadMoments(c *ckpt.Checkpoint) error {
	kinds := momentKinds(s.program())
	_, absent := c.Manifest.Extra[NoMomentsExtra]
	switch {
	case !s.program().HasMoments():
		return nil
	case absent:
		for _, k := range s.Mine {
			for _, m := range kinds {
				g := m.region(&k.Stage.Arena)
				clear(k.Arena[g.Offset : g.Offset+g.Size])
			}
		}
		return nil
	}
	return s.loadFrom(c, OptimizerFile, kinds...)
}

// LoadParams reads a checkpoint's parameters if it is of this model.
func (s *Stores) LoadParams(c *ckpt.Checkpoint) error {
	x := c.Manifest.Extra
	if was, is := x["model"], s.program().Model.Hash; was != "" && is != "" && was != is {
		return exit.Errorf(exit.Input, "it is a checkpoint of another model (%s of job %s; the program's is %s of job "+
			"%s)%s", program.ShortHash(was), x["name"], program.ShortHash(is), s.program().Name, s.shapeDifferences(c))
	}
	return s.loadFrom(c, ModelFile, weightKinds(s.program())...)
}

// shapeDifferences lists the tensors of another model's checkpoint that have other shapes than the program's, such as
// learned positions of another length. If there are none, it says that the shapes may agree.
func (s *Stores) shapeDifferences(c *ckpt.Checkpoint) string {
	const alike = ", although their tensors may have the same shapes"
	if !s.Team.IsFirst() {
		return alike
	}
	f, err := c.File(ModelFile)
	if err != nil { // the error of the other model is more important than that of the file
		return alike
	}
	defer f.Close()
	was := map[string][]int64{}
	for _, t := range f.Tensors() {
		was[t.Name] = t.Shape
	}
	var words []string
	for _, t := range Of(s.program(), s.All[0].Coord) {
		name := t.Name + weightKind(s.program()).suffix
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

// loadFrom reads the tensors of some kinds from a file of the checkpoint, which must not hold others.
func (s *Stores) loadFrom(c *ckpt.Checkpoint, name string, kinds ...kind) error {
	if !s.Team.IsFirst() {
		return s.loadKinds(kinds, nil)
	}
	f, err := c.File(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.checkTensorNames(f.Tensors(), kinds); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return s.loadKinds(kinds, f.Tensor)
}

// loadKinds loads the tensors of each kind.
func (s *Stores) loadKinds(kinds []kind, find func(name string) (ckpt.Tensor, *io.SectionReader, error)) (err error) {
	for _, k := range kinds {
		if s.program().Elem == program.F64 {
			err = load[float64](s, k, find)
		} else {
			err = load[float32](s, k, find)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTensorNames refuses tensors that the program does not have: they are of another model.
func (s *Stores) checkTensorNames(saved []ckpt.Tensor, kinds []kind) error {
	first := s.All[0]
	own := map[string]bool{}
	for _, t := range Of(s.program(), first.Coord) {
		for _, k := range kinds {
			own[t.Name+k.suffix] = true
		}
	}
	return checkUnknownTensors(saved, func(name string) bool { return own[name] })
}
