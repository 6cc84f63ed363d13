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

// Copy copies from to to, and casts if their types differ.
func Copy[U, T num.Stored | int32](r *rt.Rank, to Buf[U], from Buf[T]) {
	if u, t := suffix[U](), suffix[T](); u != t {
		deviceOf(r).call("cast", u+"_"+t, 1, to.N, addr(deviceOf(r), to), addr(deviceOf(r), from), int64(to.N))
		return
	}
	if d := deviceOf(r); to.At != from.At && to.N > 0 {
		rt.Check(d.stream().Copy(bytesOf(d, to), bytesOf(d, from)))
	}
}

// Accumulate computes the runtime's Accumulate: it adds x to grad.
func Accumulate[G, X num.Stored](r *rt.Rank, grad Buf[G], x Buf[X]) {
	d := deviceOf(r)
	d.call("accumulate", suffix[G]()+"_"+suffix[X](), 1, x.N, addr(d, grad), addr(d, x), int64(x.N))
}

// Concat computes the runtime's Join.
func Concat[T num.Stored](r *rt.Rank, y, a, b Buf[T], outer, times, width, more int) {
	d := deviceOf(r)
	d.call("join", suffix[T](), outer*times, width+more, addr(d, y), addr(d, a), addr(d, b), outer, times, width, more)
}

// SliceFrom computes the runtime's PartOf: it copies the elements from from on of outer rows of n elements.
func SliceFrom[T num.Stored](r *rt.Rank, y, x Buf[T], outer, n, from int) {
	deviceOf(r).part(suffix[T](), y.At, x.At, outer, y.N/outer, n, from)
}

// Select computes the runtime's Select.
func Select[T num.Stored](r *rt.Rank, y, x Buf[T], outer, n, inner, from int) {
	deviceOf(r).part(suffix[T](), y.At, x.At, outer, inner, n*inner, from*inner)
}

// part copies cols elements of each of rows rows, which are n elements apart.
func (d *executor) part(types string, y, x, rows, cols, n, from int) {
	d.call("part", types, rows, cols, d.ptr(y), d.ptr(x), rows, cols, n, from)
}

// Dropout computes cpu.Dropout. key is the device address of the key ([DropoutKey]).
func Dropout[T num.Stored](r *rt.Rank, y, x Buf[T], p float64, key uint64, view cpu.GlobalView) {
	d := deviceOf(r)
	if p == 0 {
		Copy(r, y, x)
		return
	}
	cols := view.Local[view.N-1]
	table := d.constant(view, func() []byte { return viewTable(&view) })
	d.call("dropout", suffix[T](), y.N/cols, cols, addr(d, y), addr(d, x), table, cuda.Pointer(key),
		rng.Least(p), 1/(1-p),
		y.N/cols, cols)
}

// viewTable encodes a view for kernels: the number of dims, then the local and global sizes, offset, half
// and then.
func viewTable(v *cpu.GlobalView) (b []byte) {
	b = binary.NativeEndian.AppendUint32(b, uint32(v.N))
	for _, row := range [][4]int{v.Local, v.Global, v.Offset, v.Half, v.Then} {
		for _, n := range row {
			b = binary.NativeEndian.AppendUint32(b, uint32(n))
		}
	}
	return b
}
