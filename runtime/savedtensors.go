package runtime

import (
	"errors"
	"io"
	"slices"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// Files of a checkpoint.
const (
	modelFile     = "model.safetensors"
	optimizerFile = "optimizer.safetensors"
)

// slabElems is how many elements of a logical tensor are gathered at a time.
const slabElems = 1 << 18

// kind is a set of tensors that are saved: the parameters or a moment. Files hold them in the program's Elem, which is
// at least as wide as the stored type, so that reading restores them exactly.
type kind struct {
	suffix string // suffix of the tensors' names
	elem   Elem
	region func(*Arena) Region // region of a moment or the master copy
	flat   bool                // laid out like the flat space; else like the buckets' optimizer state
	grads  bool                // gradients: valid only in this rank's part of a bucket
}

func (p *Program) paramKind() kind { return kind{elem: p.TensorTypes().Params, flat: true} }

// weightKind returns the most precise copy of the parameters, which is saved: the optimizer's, if it has one.
func (p *Program) weightKind() kind {
	if p.HasMaster() {
		return kind{elem: p.TensorTypes().Master, region: func(a *Arena) Region { return a.Master }}
	}
	return p.paramKind()
}

// weightKinds returns all copies of the parameters. Loading parameters fills each.
func (p *Program) weightKinds() []kind {
	if p.HasMaster() {
		return []kind{p.paramKind(), p.weightKind()}
	}
	return []kind{p.paramKind()}
}

// momentKinds returns the optimizer's tensors, with PyTorch's names.
func (p *Program) momentKinds() []kind {
	names := []string{".exp_avg", ".exp_avg_sq"}
	if p.Optim == SGD {
		names = []string{".momentum_buffer"}
	}
	var out []kind
	for i, region := range []func(*Arena) Region{func(a *Arena) Region {
		return a.Moment1
	}, func(a *Arena) Region {
		return a.Moment2
	}}[:len(names)] {
		if region(&p.Stages[0].Arena).Size > 0 {
			out = append(out, kind{suffix: names[i], elem: p.TensorTypes().Moments, region: region})
		}
	}
	return out
}

// piece returns the part of a rank's tensor that is in its arena: local elements [lo, hi), and the byte offset of the
// first.
func (k *kind) piece(r *Rank, t *tensor) (lo, hi, at int) {
	if t.local == 0 {
		return 0, 0, 0
	}
	i := bucketOf(r.Stage, t)
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	if k.flat && !spec.ShardedParams {
		return 0, t.local, r.paramAt(i, t.offset)
	}
	lo, hi = max(b.lo-t.offset, 0), min(b.hi-t.offset, t.local)
	if lo >= hi {
		return 0, 0, 0
	}
	switch {
	case k.grads:
		return lo, hi, r.gradAt(i, t.offset+lo)
	case k.flat:
		return lo, hi, r.paramAt(i, t.offset+lo)
	}
	return lo, hi, k.region(&r.Stage.Arena).Offset + (spec.State+t.offset+lo-b.lo)*k.elem.Size()
}

// isSaved reports whether this rank's copy is the one that is saved among equal copies.
func (k *kind) isSaved(r *Rank, t *tensor) bool {
	if t.offset < 0 || t.second {
		return false
	}
	p := r.Program
	var shard []string
	if b := &r.Stage.Buckets[bucketOf(r.Stage, t)]; !k.flat || b.ShardedParams {
		shard = p.Atoms(b.Shard)
	}
	for _, a := range p.Mesh {
		if a.Name != program.StageAxis && r.Coord[a.Name] != 0 && !isSplitOver(t.param, a.Name) &&
			!slices.Contains(shard, a.Name) {
			return false
		}
	}
	return true
}

// slab calls move for each run of rows [from, to) of a logical tensor that the rank has.
func (k *kind) slab(r *Rank, t *tensor, from, to int, move func(at, logical, n int)) {
	lo, hi, at := k.piece(r, t)
	a, b := t.slab(from, to)
	first, skip, size := lo, from*t.row(), k.elem.Size()
	t.runs(max(lo, a), min(hi, b), func(local, logical, n int) {
		move(at+(local-first)*size, logical-skip, n)
	})
}

// slabs calls f for consecutive ranges of rows of the tensor, each of about slabElems elements.
func (t *tensor) slabs(f func(from, to int) error) error {
	step := max(1, slabElems/max(1, t.row()))
	for from := 0; from < t.dims[0].size; from += step {
		if err := f(from, min(from+step, t.dims[0].size)); err != nil {
			return err
		}
	}
	return nil
}

// content returns a safetensors file with all tensors of some kinds. They are gathered from the ranks' arenas when the
// file is written.
func content[F Float](c *crew, name string, kinds []kind) ckpt.Content {
	parts := c.parts()
	each := len(parts[0])
	out := ckpt.Content{Name: name, Metadata: map[string]string{"format": "pt"}}
	for _, k := range kinds {
		for _, t := range parts[0] {
			out.Tensors = append(out.Tensors, ckpt.Tensor{Name: t.name + k.suffix, DType: ckpt.DTypeOf[F](),
				Shape: paramShape(t.param)})
		}
	}
	buf := make([]F, 0)
	out.Fill = func(i int, w io.Writer) error {
		k := &kinds[i/each]
		return parts[0][i%each].slabs(func(from, to int) error {
			n := (to - from) * parts[0][i%each].row()
			buf = slices.Grow(buf[:0], n)[:n]
			if err := gatherSlab(c, k, parts, i%each, from, to, buf); err != nil {
				return err
			}
			return ckpt.WriteFloats(w, buf)
		})
	}
	return out
}

// paramShape returns the logical shape.
func paramShape(p *Param) []int64 {
	out := make([]int64, len(p.Dims))
	for i, d := range p.Dims {
		out[i] = int64(d.Size)
	}
	return out
}

// load reads all tensors of a kind into the ranks' arenas. find returns a tensor of a file by its name. Only the first
// process calls it.
func load[F Float](c *crew, k kind, find func(name string) (ckpt.Tensor, *io.SectionReader, error)) error {
	own := tensors(c.ranks[0].Program, c.ranks[0].Coord)
	parts := c.parts()
	var buf []F
	for i, t := range own {
		var saved ckpt.Tensor
		var file *io.SectionReader
		var err error
		if c.team.IsFirst() {
			saved, file, err = find(t.name + k.suffix)
		}
		if err != nil {
			return err
		}
		if want := paramShape(t.param); c.team.IsFirst() && !slices.Equal(saved.Shape, want) {
			return exit.Errorf(exit.Input, "tensor %s has shape %v in the checkpoint, but the program needs %v",
				saved.Name, saved.Shape, want)
		}
		err = t.slabs(func(from, to int) error {
			n := (to - from) * t.row()
			buf = slices.Grow(buf[:0], n)[:n]
			if c.team.IsFirst() {
				err := ckpt.ReadFloats(file, saved.DType, int64(from*t.row()), buf)
				if err == nil {
					err = finiteTensor(saved.Name, from*t.row(), buf)
				}
				if err != nil {
					return err
				}
			}
			if err := broadcastTo(c.team, buf); err != nil {
				return err
			}
			for _, r := range c.mine {
				k.slab(r, &parts[r.ID][i], from, to, func(at, logical, n int) {
					write(r, k.elem, at, buf[logical:][:n])
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inputCode returns the exit code of an error: ExitInput if another package marks it as an input error, else others.
func inputCode(err error, others int) int {
	var bad *ckpt.InputError
	var coded *exit.Error
	switch {
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &bad):
		return exit.Input
	}
	return others
}
