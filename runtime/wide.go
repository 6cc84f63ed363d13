package runtime

import (
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/vec"
)

// A kernel of float32 works on 16-bit numbers by way of the rank's scratch: generated code widens its operands, has
// room for its results, narrows these and is done.

// Widen is x as float32, in the rank's scratch until Done.
func Widen[H num.Half](r *Rank, x []H) []float32 {
	out := Scratch(r, len(x))
	num.Load(out, x)
	return out
}

// Scratch is n numbers of the rank's scratch, whatever they hold, until Done.
func Scratch(r *Rank, n int) []float32 {
	out := r.scratch[r.scratched : r.scratched+n]
	r.scratched += n
	return out
}

// Narrow rounds x into dst.
func Narrow[H num.Half](dst []H, x []float32) { num.Store(dst, x) }

// FreeScratch gives the scratch back.
func FreeScratch(r *Rank) { r.scratched = 0 }

// Accumulate is
//
//	for i := range grad { grad[i] += x[i] }
//
// in float32, of numbers however they are stored, or as float64.
func Accumulate[G, X num.Stored](grad []G, x []X) {
	if wide, ok := any(grad).([]float64); ok {
		for i, v := range any(x).([]float64) {
			wide[i] += v
		}
		return
	}
	var sum, more [blockElems]float32
	for len(grad) > 0 {
		n := min(len(grad), blockElems)
		num.Load(sum[:], grad[:n])
		num.Load(more[:], x[:n])
		for i := vec.AddTo(sum[:n], more[:n]); i < n; i++ {
			sum[i] += more[i]
		}
		num.Store(grad[:n], sum[:n])
		grad, x = grad[n:], x[n:]
	}
}

// EmbedFrom is the kernel Embed on a table however it is stored.
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

// PickFrom is the kernel Pick on logits however they are stored.
func PickFrom[Y, X num.Stored](y []Y, x []X, ids []int32, rows, cols, lo, n int) {
	clear(y[:rows])
	for i := range rows {
		if at := int(ids[i]) - lo; uint(at) < uint(n) {
			num.Convert(y[i:i+1], x[i*cols+at:][:1])
		}
	}
}
