//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
)

// Copy leaves in to what is in from, in its own type.
func Copy[U, T num.Stored | int32](r *rt.Rank, to Buf[U], from Buf[T]) {
	if u, t := suffix[U](), suffix[T](); u != t {
		of(r).call("cast", u+"_"+t, 1, to.N, at(of(r), to), at(of(r), from), int64(to.N))
		return
	}
	if d := of(r); to.At != from.At && to.N > 0 {
		rt.Check(d.stream().Copy(bytesOf(d, to), bytesOf(d, from)))
	}
}

// Accumulate is the runtime's: it adds x to grad.
func Accumulate[G, X num.Stored](r *rt.Rank, grad Buf[G], x Buf[X]) {
	d := of(r)
	d.call("accumulate", suffix[G]()+"_"+suffix[X](), 1, x.N, at(d, grad), at(d, x), int64(x.N))
}

// Concat is the runtime's.
func Concat[T num.Stored](r *rt.Rank, y, a, b Buf[T], outer, times, width, more int) {
	d := of(r)
	d.call("join", suffix[T](), outer*times, width+more, at(d, y), at(d, a), at(d, b), outer, times, width, more)
}

// SliceFrom is the runtime's: of outer rows of n elements, those from at on.
func SliceFrom[T num.Stored](r *rt.Rank, y, x Buf[T], outer, n, from int) {
	of(r).part(suffix[T](), y.At, x.At, outer, y.N/outer, n, from)
}

// Select is the runtime's.
func Select[T num.Stored](r *rt.Rank, y, x Buf[T], outer, n, inner, from int) {
	of(r).part(suffix[T](), y.At, x.At, outer, inner, n*inner, from*inner)
}

// part copies cols elements of each of rows rows, which are n elements apart.
func (d *device) part(types string, y, x, rows, cols, n, from int) {
	d.call("part", types, rows, cols, d.ptr(y), d.ptr(x), rows, cols, n, from)
}

// Dropout is the loop of that name of package cpu; key is where the key lies ([DropoutKey]).
func Dropout[T num.Stored](r *rt.Rank, y, x Buf[T], p float64, key uint64, view cpu.GlobalView) {
	d := of(r)
	if p == 0 {
		Copy(r, y, x)
		return
	}
	cols := view.Local[view.N-1]
	table := d.constant(view, func() []byte { return viewTable(&view) })
	d.call("dropout", suffix[T](), y.N/cols, cols, at(d, y), at(d, x), table, cuda.Pointer(key), rng.Least(p), 1/(1-p),
		y.N/cols, cols)
}

// viewTable is a view as kernels have it: the number of dims, then local and global sizes, offset, half and then.
func viewTable(v *cpu.GlobalView) (b []byte) {
	b = binary.NativeEndian.AppendUint32(b, uint32(v.N))
	for _, row := range [][4]int{v.Local, v.Global, v.Offset, v.Half, v.Then} {
		for _, n := range row {
			b = binary.NativeEndian.AppendUint32(b, uint32(n))
		}
	}
	return b
}
