package tensors

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// Files of a checkpoint.
const (
	ModelFile     = "model.safetensors"
	OptimizerFile = "optimizer.safetensors"
)

// slabElems is how many elements of a logical tensor are gathered at a time.
const slabElems = 1 << 18

// kind is a set of tensors that are saved: the parameters or a moment. Files hold them in the program's Elem, which is
// at least as wide as the stored type, so that reading restores them exactly.
type kind struct {
	suffix string // suffix of the tensors' names
	elem   program.Elem
	region func(*program.Arena) *program.Region // region of the arena; nil for gradients
	flat   bool                                 // laid out like the flat space; else like the buckets' optimizer state
	grads  bool                                 // gradients: valid only in this rank's part of a bucket
}

func paramKind(p *program.Program) kind {
	return kind{elem: p.TensorTypes().Params, flat: true, region: func(a *program.Arena) *program.Region {
		return &a.Params
	}}
}

// weightKind returns the most precise copy of the parameters, which is saved: the optimizer's, if it has one.
func weightKind(p *program.Program) kind {
	if p.HasMaster() {
		return kind{elem: p.TensorTypes().Master, region: func(a *program.Arena) *program.Region { return &a.Master }}
	}
	return paramKind(p)
}

// weightKinds returns all copies of the parameters. Loading parameters fills each.
func weightKinds(p *program.Program) []kind {
	if p.HasMaster() {
		return []kind{paramKind(p), weightKind(p)}
	}
	return []kind{paramKind(p)}
}

// momentKinds returns the optimizer's tensors, with PyTorch's names.
func momentKinds(p *program.Program) []kind {
	names := []string{".exp_avg", ".exp_avg_sq"}
	if p.Optim == program.SGD {
		names = []string{".momentum_buffer"}
	}
	var out []kind
	for i, region := range []func(*program.Arena) *program.Region{func(a *program.Arena) *program.Region {
		return &a.Moment1
	}, func(a *program.Arena) *program.Region {
		return &a.Moment2
	}}[:len(names)] {
		if region(&p.Stages[0].Arena).Size > 0 {
			out = append(out, kind{suffix: names[i], elem: p.TensorTypes().Moments, region: region})
		}
	}
	return out
}

// piece returns the part of a rank's tensor that is in its arena: local elements [lo, hi), and the byte offset of the
// first.
func (k *kind) piece(r *Store, t *Tensor) (lo, hi, at int) {
	if t.Local == 0 {
		return 0, 0, 0
	}
	i := bucketOf(r.Stage, t)
	b, spec := &r.Shards[i], &r.Stage.Buckets[i]
	if k.flat && !spec.ShardedParams {
		return 0, t.Local, r.ParamAt(i, t.Offset)
	}
	lo, hi = max(b.Lo-t.Offset, 0), min(b.Hi-t.Offset, t.Local)
	if lo >= hi {
		return 0, 0, 0
	}
	switch {
	case k.grads:
		return lo, hi, r.GradAt(i, t.Offset+lo)
	case k.flat:
		return lo, hi, r.ParamAt(i, t.Offset+lo)
	}
	return lo, hi, k.region(&r.Stage.Arena).Offset + (spec.State+t.Offset+lo-b.Lo)*k.elem.Size()
}

// isSaved reports whether this rank's copy is the one that is saved among equal copies.
func (k *kind) isSaved(r *Store, t *Tensor) bool {
	if t.Offset < 0 || t.second {
		return false
	}
	p := r.Data
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
func (k *kind) slab(r *Store, t *Tensor, from, to int, move func(at, logical, n int)) {
	lo, hi, at := k.piece(r, t)
	a, b := t.slab(from, to)
	first, skip, size := lo, from*t.row(), k.elem.Size()
	t.Runs(max(lo, a), min(hi, b), func(local, logical, n int) {
		move(at+(local-first)*size, logical-skip, n)
	})
}

// slabs calls f for consecutive ranges of rows of the tensor, each of about slabElems elements.
func (t *Tensor) slabs(f func(from, to int) error) error {
	step := max(1, slabElems/max(1, t.row()))
	for from := 0; from < t.dims[0].size; from += step {
		if err := f(from, min(from+step, t.dims[0].size)); err != nil {
			return err
		}
	}
	return nil
}

// content returns a safetensors file with all tensors of some kinds. They are gathered from the ranks' arenas when the
// file is written. After an error of the file, Fill still gathers the rest of the tensor, so that it has received what
// the other processes send.
func content[F Float](c *Stores, name string, kinds []kind) ckpt.Content {
	parts := c.parts()
	each := len(parts[0])
	out := ckpt.Content{Name: name, Metadata: map[string]string{"format": "pt"}}
	for _, k := range kinds {
		for _, t := range parts[0] {
			out.Tensors = append(out.Tensors, ckpt.Tensor{Name: t.Name + k.suffix, DType: ckpt.DTypeOf[F](),
				Shape: paramShape(t.param)})
		}
	}
	buf := make([]F, 0)
	out.Fill = func(i int, w io.Writer) error {
		k := &kinds[i/each]
		var failed error
		err := parts[0][i%each].slabs(func(from, to int) error {
			n := (to - from) * parts[0][i%each].row()
			buf = slices.Grow(buf[:0], n)[:n]
			if err := gatherSlab(c, k, parts, slab{i % each, from, to}, buf); err != nil {
				return err
			}
			if failed != nil {
				return nil
			}
			failed = ckpt.WriteFloats(w, buf)
			if bad := (*ckpt.NonfiniteError)(nil); errors.As(failed, &bad) {
				bad.Tensor, bad.Elem = out.Tensors[i].Name, bad.Elem+int64(from*parts[0][i%each].row())
			}
			if c.IsAlone() {
				return failed
			}
			return nil
		})
		return cmp.Or(err, failed)
	}
	return out
}

// paramShape returns the logical shape.
func paramShape(p *program.Param) []int64 {
	out := make([]int64, len(p.Dims))
	for i, d := range p.Dims {
		out[i] = int64(d.Size)
	}
	return out
}

// load reads all tensors of a kind into the ranks' arenas. find returns a tensor of a file by its name. Only the first
// process calls it.
func load[F Float](c *Stores, k kind, find func(name string) (ckpt.Tensor, *io.SectionReader, error)) error {
	own := Of(c.program(), c.All[0].Coord)
	parts := c.parts()
	var buf []F
	for i, t := range own {
		var saved ckpt.Tensor
		var file *io.SectionReader
		var err error
		if c.Team.IsFirst() {
			saved, file, err = find(t.Name + k.suffix)
		}
		if err != nil {
			return err
		}
		if want := paramShape(t.param); c.Team.IsFirst() && !slices.Equal(saved.Shape, want) {
			return exit.Errorf(exit.Input, "tensor %s has shape %v in the checkpoint, but the program needs %v",
				saved.Name, saved.Shape, want)
		}
		err = t.slabs(func(from, to int) error {
			n := (to - from) * t.row()
			buf = slices.Grow(buf[:0], n)[:n]
			if c.Team.IsFirst() {
				err := ckpt.ReadFloats(file, saved.DType, int64(from*t.row()), buf)
				if err == nil {
					err = finiteTensor(saved.Name, from*t.row(), buf)
				}
				if err != nil {
					return err
				}
			}
			if err := broadcastTo(c.Team, buf); err != nil {
				return err
			}
			for _, r := range c.Mine {
				k.slab(r, &parts[r.ID][i], from, to, func(at, logical, n int) {
					Write(r, k.elem, at, buf[logical:][:n])
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
