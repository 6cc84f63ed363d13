package runtime

import (
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rank"
)

// Kernels for float32 process 16-bit numbers through the rank's scratch memory: generated code widens the operands,
// allocates the results, runs the kernel, narrows the results, and frees the scratch.

// Widen returns x as float32, in the rank's scratch until FreeScratch.
func Widen[H num.Half](r *rank.Rank, x []H) []float32 {
	out := Scratch(r, len(x))
	num.Load(out, x)
	return out
}

// Scratch returns n uninitialized numbers of the rank's scratch, valid until FreeScratch.
func Scratch(r *rank.Rank, n int) []float32 {
	out := r.Scratch[r.Scratched : r.Scratched+n]
	r.Scratched += n
	return out
}

// Narrow rounds x into dst.
func Narrow[H num.Half](dst []H, x []float32) { num.Store(dst, x) }

// FreeScratch frees all of the rank's scratch.
func FreeScratch(r *rank.Rank) { r.Scratched = 0 }

// EmbedFrom is the kernel Embed for a table of any storage type.
func EmbedFrom[Y, T num.Stored](y []Y, table []T, ids []int32, cols, lo, n int) {
	for i, id := range ids {
		row := y[i*cols:][:cols]
		if at := int(id) - lo; uint(at) < uint(n) {
			num.Convert(row, table[at*cols:][:cols])
		} else {
			clear(row)
		}
	}
}

// PickFrom is the kernel Pick for logits of any storage type.
func PickFrom[Y, X num.Stored](y []Y, x []X, ids []int32, rows, cols, lo, n int) {
	clear(y[:rows])
	for i := range rows {
		if at := int(ids[i]) - lo; uint(at) < uint(n) {
			num.Convert(y[i:i+1], x[i*cols+at:][:1])
		}
	}
}

// Accumulate is
//
//	for i := range grad { grad[i] += x[i] }
//
// in float32, of numbers however they are stored, or as float64.
func Accumulate[G, X num.Stored](grad []G, x []X) { num.Accumulate(grad, x) }
