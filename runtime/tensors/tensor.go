package tensors

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// extent is one dimension of a logical tensor and the part of it that a rank holds.
type extent struct {
	size  int // logical
	width int // of the local part, padding included
	pitch int // width, and that of what lies between two parts: other parameters
	first int // logical index of the local part's first element
	count int // elements of the local part that are not padding
}

// Tensor is one rank's part of one logical tensor: a parameter, or one layer of it.
type Tensor struct {
	Name   string
	param  *program.Param
	layer  int
	Offset int // of the local part in the flat space, in elements; -1 if another stage has it
	Number int // number of its first element in the whole model; see numberParams
	// elements from the local part's first to its last, with padding and other parameters between; 0 if another stage
	// has it
	Local  int
	second bool // a copy: the first stage has it too, and owns it
	dims   []extent
}

// Of returns the rank's parts of all parameters, in the program's order. A tensor without dims has one element.
func Of(p *program.Program, coord map[string]int) []Tensor {
	var out []Tensor
	first := numberParams(p.Params)
	for i := range p.Params {
		par := &p.Params[i]
		dims := extents(p, par.Dims, coord)
		for layer := range par.Layers {
			t := Tensor{Name: strings.ReplaceAll(par.Name, "{layer}", strconv.Itoa(layer)), param: par, layer: layer,
				Offset: -1, dims: dims}
			t.Offset, t.second = findParam(&p.Stages[coord[program.StageAxis]], par, layer)
			if t.Offset >= 0 {
				t.Local = span(dims)
			}
			t.Number = first[i] + layer*t.elems()
			out = append(out, t)
		}
	}
	return out
}

// findParam returns the offset of a layer of a parameter in the stage's flat space, -1 if it is not there, and whether
// it is a copy.
func findParam(s *program.Stage, p *program.Param, layer int) (offset int, second bool) {
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

func extents(p *program.Program, dims []program.Dim, coord map[string]int) (out []extent) {
	for i, d := range dims {
		part, parts := 0, 1
		for _, a := range d.Axes {
			part += coord[a] * parts
			parts *= p.AxisSize(a)
		}
		e := extent{size: d.Size, width: cmp.Or(d.Width, (d.Size+parts-1)/parts)}
		e.first = min(part*e.width, d.Size)
		e.count = min(e.width, d.Size-e.first)
		if d.Pitch > 0 {
			return append(out, e.joined(dims[i+1:], d.Pitch))
		}
		e.pitch = e.width
		out = append(out, e)
	}
	if len(out) == 0 {
		out = []extent{{size: 1, width: 1, pitch: 1, count: 1}}
	}
	return out
}

// joined returns the extent as one dim with the dims after it, none of which is split.
func (e extent) joined(after []program.Dim, pitch int) extent {
	n := 1
	for _, d := range after {
		n *= d.Size
	}
	return extent{size: e.size * n, width: e.width * n, pitch: pitch, first: e.first * n, count: e.count * n}
}

// span returns the number of elements from the first to the last one of a part.
func span(dims []extent) int {
	n, stride := 1, 1
	for i := len(dims) - 1; i >= 0; i-- {
		if dims[i].width == 0 {
			return 0
		}
		n += (dims[i].width - 1) * stride
		stride *= dims[i].pitch
	}
	return n
}

// isApart reports whether other parameters lie between the elements of the local part.
func (t *Tensor) isApart() bool {
	return slices.ContainsFunc(t.dims, func(d extent) bool { return d.pitch > d.width })
}

// elems returns the number of elements of the logical tensor.
func (t *Tensor) elems() int {
	n := 1
	for _, d := range t.dims {
		n *= d.size
	}
	return n
}

// row returns the number of logical elements per index of the first dimension.
func (t *Tensor) row() int { return t.elems() / max(1, t.dims[0].size) }

// Runs calls f for every run of the local elements [lo, hi) that is contiguous both locally and in the logical tensor.
// local and logical are its indices in both. Padding is left out.
func (t *Tensor) Runs(lo, hi int, f func(local, logical, n int)) {
	last := t.dims[len(t.dims)-1]
	if last.width == 0 {
		return
	}
	for row := lo / last.pitch; row*last.pitch < hi; row++ {
		base, ok := t.logicalRow(row)
		if !ok {
			continue
		}
		at := row * last.pitch
		from, to := max(lo-at, 0), min(hi-at, last.count)
		if from < to {
			f(at+from, base*last.size+last.first+from, to-from)
		}
	}
}

// logicalRow returns the row-major number of a local row among the logical tensor's rows of the last dimension. ok is
// false for padding.
func (t *Tensor) logicalRow(row int) (logical int, ok bool) {
	stride := 1
	for i := len(t.dims) - 2; i >= 0; i-- {
		d := &t.dims[i]
		at := row % d.pitch
		row /= d.pitch
		if at >= d.count {
			return 0, false
		}
		logical += (d.first + at) * stride
		stride *= d.size
	}
	return logical, true
}

// slab returns the range of local elements with indices [from, to) of the first dimension. An empty range is (0, 0).
func (t *Tensor) slab(from, to int) (lo, hi int) {
	d := t.dims[0]
	a, b := max(from, d.first)-d.first, min(to, d.first+d.count)-d.first
	if a >= b || d.width == 0 {
		return 0, 0
	}
	stride := 1
	for _, e := range t.dims[1:] {
		stride *= e.pitch
	}
	return a * stride, min(b*stride, t.Local)
}

// isSplitOver reports whether any dimension of the tensor is split over the atom.
func isSplitOver(p *program.Param, atom string) bool {
	return slices.ContainsFunc(p.Dims, func(d program.Dim) bool { return slices.Contains(d.Axes, atom) })
}

// bucketOf returns the index of the bucket that holds the tensor's first element, or -1.
func bucketOf(s *program.Stage, t *Tensor) int {
	return slices.IndexFunc(s.Buckets, func(b program.Bucket) bool {
		return b.Offset <= t.Offset && t.Offset < b.Offset+b.Elems
	})
}
