//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// SumRows sums over the rows of x, and adds to out if acc.
func SumRows[G, T num.Stored](r *rt.Rank, out Buf[G], x Buf[T], rows, cols int, acc bool) {
	d := deviceOf(r)
	bytes, _ := computeType[T]()
	parts := kernels.Parts(rows)
	room := d.scratchParts(parts*cols*bytes, sumScratch[G, T](cols))
	withSums[G, T](d, out, room[1], acc, func(to cuda.Pointer) {
		inParts[T](d, to, room[0], parts, cols, acc, func(to cuda.Pointer, acc bool) {
			d.call("sum_rows", suffix[T](), rows, cols, to, addr(d, x), rows, cols, acc)
		})
	})
}

// SumCols sums over the columns of x, and adds to out if acc.
func SumCols[G, T num.Stored](r *rt.Rank, out Buf[G], x Buf[T], rows, cols int, acc bool) {
	d := deviceOf(r)
	withSums[G, T](d, out, d.scratchParts(sumScratch[G, T](rows))[0], acc, func(to cuda.Pointer) {
		d.call("sum_cols", suffix[T](), rows, cols, to, addr(d, x), rows, cols, acc)
	})
}

// SumRowsEach computes SumRows for each of n consecutive matrices.
func SumRowsEach[G, T num.Stored](r *rt.Rank, out Buf[G], x Buf[T], n, rows, cols int, acc bool) {
	d := deviceOf(r)
	withSums[G, T](d, out, d.scratchParts(sumScratch[G, T](n * cols))[0], acc, func(to cuda.Pointer) {
		d.call("sum_rows_each", suffix[T](), n, cols, to, addr(d, x), n, rows, cols, acc)
	})
}
