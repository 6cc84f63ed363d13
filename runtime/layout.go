package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
)

// extent is one dimension of a logical tensor and the part of it that a rank holds.
type extent struct {
	size  int // logical
	width int // of the local part, padding included
	first int // logical index of the local part's first element
	count int // elements of the local part that are not padding
}

// tensor is one rank's part of one logical tensor: a parameter, or one layer of it.
type tensor struct {
	name   string
	param  *Param
	layer  int
	offset int  // of the local part in the flat space, in elements; -1 if another stage has it
	number int  // number of its first element in the whole model; see numbered
	local  int  // elements of the local part with padding; 0 if another stage has it
	second bool // a copy: the first stage has it too, and owns it
	dims   []extent
}

// tensors returns the rank's parts of all parameters, in the program's order. A tensor without dims has one element.
func tensors(p *Program, coord map[string]int) []tensor {
	var out []tensor
	first := numbered(p.Params)
	for i := range p.Params {
		par := &p.Params[i]
		dims, local := extents(p, par.Dims, coord)
		for layer := range par.Layers {
			t := tensor{name: strings.ReplaceAll(par.Name, "{layer}", strconv.Itoa(layer)), param: par, layer: layer,
				offset: -1, dims: dims}
			t.offset, t.second = findParam(&p.Stages[coord[program.StageAxis]], par, layer)
			if t.offset >= 0 {
				t.local = local
			}
			t.number = first[i] + layer*t.elems()
			out = append(out, t)
		}
	}
	return out
}

// findParam returns the offset of a layer of a parameter in the stage's flat space, -1 if it is not there, and whether
// it is a copy.
func findParam(s *Stage, p *Param, layer int) (offset int, second bool) {
	for i, place := range p.Places {
		for _, b := range s.Buckets {
			if b.Class != place.Class {
				continue
			}
			for _, piece := range b.Pieces {
				if piece.Segment == place.Segment && piece.Layer == layer {
					return piece.Offset + place.Offset, i > 0
				}
			}
		}
	}
	return -1, false
}

func extents(p *Program, dims []Dim, coord map[string]int) (out []extent, local int) {
	local = 1
	for _, d := range dims {
		part, parts := 0, 1
		for _, a := range d.Axes {
			part += coord[a] * parts
			parts *= p.AxisSize(a)
		}
		e := extent{size: d.Size, width: (d.Size + parts - 1) / parts}
		e.first = min(part*e.width, d.Size)
		e.count = min(e.width, d.Size-e.first)
		out = append(out, e)
		local *= e.width
	}
	if len(out) == 0 {
		out = []extent{{1, 1, 0, 1}}
	}
	return out, local
}

// elems returns the number of elements of the logical tensor.
func (t *tensor) elems() int {
	n := 1
	for _, d := range t.dims {
		n *= d.size
	}
	return n
}

// row returns the number of logical elements per index of the first dimension.
func (t *tensor) row() int { return t.elems() / max(1, t.dims[0].size) }

// runs calls f for every run of the local elements [lo, hi) that is contiguous both locally and in the logical tensor.
// local and logical are its indices in both. Padding is left out.
func (t *tensor) runs(lo, hi int, f func(local, logical, n int)) {
	last := t.dims[len(t.dims)-1]
	if last.width == 0 {
		return
	}
	for row := lo / last.width; row*last.width < hi; row++ {
		base, ok := t.logicalRow(row)
		if !ok {
			continue
		}
		at := row * last.width
		from, to := max(lo-at, 0), min(hi-at, last.count)
		if from < to {
			f(at+from, base*last.size+last.first+from, to-from)
		}
	}
}

// logicalRow returns the row-major number of a local row among the logical tensor's rows of the last dimension. ok is
// false for padding.
func (t *tensor) logicalRow(row int) (logical int, ok bool) {
	stride := 1
	for i := len(t.dims) - 2; i >= 0; i-- {
		d := &t.dims[i]
		at := row % d.width
		row /= d.width
		if at >= d.count {
			return 0, false
		}
		logical += (d.first + at) * stride
		stride *= d.size
	}
	return logical, true
}

// slab returns the range of local elements with indices [from, to) of the first dimension. An empty range is (0, 0).
func (t *tensor) slab(from, to int) (lo, hi int) {
	d := t.dims[0]
	a, b := max(from, d.first)-d.first, min(to, d.first+d.count)-d.first
	if a >= b || d.width == 0 {
		return 0, 0
	}
	stride := t.local / d.width
	return a * stride, b * stride
}

// isSplitOver reports whether any dimension of the tensor is split over the atom.
func isSplitOver(p *Param, atom string) bool {
	return slices.ContainsFunc(p.Dims, func(d Dim) bool { return slices.Contains(d.Axes, atom) })
}

// validate returns an error for each contradiction in the program's tables, which is a bug of the compiler.
func (p *Program) validate() (err error) {
	bad := func(format string, args ...any) {
		err = errors.Join(err, fmt.Errorf("runtime: the program is wrong: "+format, args...))
	}
	for i := range p.Stages {
		p.validateStage(&p.Stages[i], bad)
	}
	if b := p.Batch; b.GlobalBatch != b.MicroBatch*b.MicroBatches*b.Replicas {
		bad("global batch %d is not %d × %d × %d", b.GlobalBatch, b.MicroBatch, b.MicroBatches, b.Replicas)
	}
	if t := p.TensorTypes(); p.StochasticRounding && (t.Params != BF16 || t.Master != BF16) {
		bad("parameters cannot be rounded stochastically to %v with a master copy in %v", t.Params, t.Master)
	}
	if n := p.Ranks(p.Batch.ReplicaAxes); n != p.Batch.Replicas {
		bad("%v make %d replicas, not %d", p.Batch.ReplicaAxes, n, p.Batch.Replicas)
	}
	if n := p.Ranks(p.Batch.SeqAxes); p.Batch.SeqLen%max(n, 2*p.Batch.Zigzag) != 0 {
		bad("%v do not divide %d positions into %d parts (zigzag %d)", p.Batch.SeqAxes, p.Batch.SeqLen, n,
			p.Batch.Zigzag)
	}
	p.validatePlaces(bad)
	return err
}

// validateStage reports contradictions in a stage's tables.
func (p *Program) validateStage(s *Stage, bad func(string, ...any)) {
	types := p.TensorTypes()
	for _, c := range s.Chunks {
		for i := range c.Runs {
			seg := &p.Segments[c.Runs[i].Segment]
			if f, b, _ := seg.functions(&c.Runs[i]); f == nil || b == nil {
				bad("segment %s lacks a function that chunk %d runs", seg.Name, c.Index)
			}
		}
	}
	for i, b := range s.Buckets {
		n := p.Ranks(p.Atoms(b.Shard))
		if b.Elems%n != 0 {
			bad("bucket %d has %d elements, which %d shards do not divide", i, b.Elems, n)
		}
		params, grads := b.Elems, b.Elems
		if b.ShardedParams {
			params /= n
		}
		if b.ShardedGrads {
			grads /= n
		}
		if (b.Params+params)*types.Params.Size() > s.Arena.Params.Size ||
			(b.Grads+grads)*types.Grads.Size() > s.Arena.Grads.Size {
			bad("bucket %d ends after its regions", i)
		}
		if end := (b.State + b.Elems/n) * types.Master.Size(); p.HasMaster() && end > s.Arena.Master.Size {
			bad("the master copy of bucket %d ends at byte %d, after its region", i, end)
		}
		if end := (b.State + b.Elems/n) * types.Moments.Size(); p.HasMoments() && end > s.Arena.Moment1.Size ||
			p.Optim != SGD && end > s.Arena.Moment2.Size {
			bad("the state of bucket %d ends at byte %d, after its regions", i, end)
		}
	}
	for name, r := range s.Arena.Regions() {
		if end := r.Offset + r.Size; end > s.Arena.Size {
			bad("region %s ends at byte %d, the arena at %d", name, end, s.Arena.Size)
		}
	}
	if _, err := program.ParseSchedule(s.Schedule); err != nil {
		bad("%v", err)
	}
}

// validatePlaces checks that each tensor is on some stage.
func (p *Program) validatePlaces(bad func(string, ...any)) {
	found := map[string]bool{}
	for i := range p.Stages {
		for _, t := range tensors(p, map[string]int{program.StageAxis: i}) {
			found[t.name] = found[t.name] || t.offset >= 0
		}
	}
	for name, ok := range found {
		if !ok {
			bad("parameter %s lies in no bucket", name)
		}
	}
}

// bucketOf returns the index of the bucket that holds the tensor's first element, or -1.
func bucketOf(s *Stage, t *tensor) int {
	return slices.IndexFunc(s.Buckets, func(b Bucket) bool {
		return b.Offset <= t.offset && t.offset < b.Offset+b.Elems
	})
}

func (p *Program) mesh() comm.Mesh {
	m := make(comm.Mesh, len(p.Mesh))
	for i, a := range p.Mesh {
		m[i] = comm.Axis(a)
	}
	return m
}
