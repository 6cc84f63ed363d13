//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// RMSNorm computes cpu.RMSNorm. The functions below have the names of their CPU counterparts, too.
func RMSNorm[T num.Stored](r *rt.Rank, y, x, gain Buf[T], rows, cols int, eps float64, unit bool) {
	d := deviceOf(r)
	d.call("rms_norm", suffix[T](), rows, cols, addr(d, y), null, addr(d, x), null, addr(d, gain), rows,
		cols, eps, unit)
}

// LayerNorm normalizes rows. bias may be empty.
func LayerNorm[T num.Stored](r *rt.Rank, y, x, gain, bias Buf[T], rows, cols int, eps float64) {
	d := deviceOf(r)
	d.call("layer_norm", suffix[T](), rows, cols, addr(d, y), null, addr(d, x), null, addr(d, gain), addr(d, bias),
		rows, cols, eps)
}

// RMSNormDX computes the gradient of RMSNorm's input.
func RMSNormDX[T num.Stored](r *rt.Rank, dx, dy, x, gain Buf[T], rows, cols int, eps float64, unit bool) {
	d := deviceOf(r)
	d.call("rms_norm_dx", suffix[T](), rows, cols, addr(d, dx), addr(d, dy), null, addr(d, x), addr(d, gain), rows,
		cols, eps, unit)
}

// LayerNormDX computes the gradient of LayerNorm's input.
func LayerNormDX[T num.Stored](r *rt.Rank, dx, dy, x, gain Buf[T], rows, cols int, eps float64) {
	d := deviceOf(r)
	d.call("layer_norm_dx", suffix[T](), rows, cols, addr(d, dx), addr(d, dy), null, addr(d, x), addr(d, gain),
		rows, cols, eps)
}

// RMSNormDGain computes the gradient of RMSNorm's gain.
func RMSNormDGain[G, T num.Stored](r *rt.Rank, dgain Buf[G], dy, x Buf[T], rows, cols int, eps float64, acc bool) {
	normDGain(deviceOf(r), "rms_norm_stats", dgain, dy, x, rows, cols, eps, acc)
}

// LayerNormDGain computes the gradient of LayerNorm's gain.
func LayerNormDGain[G, T num.Stored](r *rt.Rank, dgain Buf[G], dy, x Buf[T], rows, cols int, eps float64, acc bool) {
	normDGain(deviceOf(r), "layer_norm_stats", dgain, dy, x, rows, cols, eps, acc)
}

// null is the address of an absent operand.
const null = cuda.Pointer(0)

// normDGain computes each row's mean and deviation, then sums the gradient of the gain over the rows, in
// parts first.
func normDGain[G, T num.Stored](d *device, stats string, dgain Buf[G], dy, x Buf[T], rows, cols int,
	eps float64, acc bool) {
	bytes, _ := computeType[T]()
	parts := kernels.Parts(rows)
	room := d.scratchParts(2*rows*bytes, parts*cols*bytes, sumScratch[G, T](cols))
	d.call(stats, suffix[T](), rows, cols, room[0], addr(d, x), rows, cols, eps)
	withSums[G, T](d, dgain, room[2], acc, func(to cuda.Pointer) {
		inParts[T](d, to, room[1], parts, cols, acc, func(to cuda.Pointer, acc bool) {
			d.call("norm_dgain", suffix[T](), rows, cols, to, addr(d, dy), addr(d, x), room[0], rows, cols, acc)
		})
	})
}

// inParts runs f, which sums over rows in a number of parts. f gets the address of the parts, and whether
// it adds to the values there. One part goes to to directly; several are summed afterwards.
func inParts[T num.Stored](d *device, to, room cuda.Pointer, parts, cols int, acc bool,
	f func(to cuda.Pointer, acc bool)) {
	if parts == 1 {
		f(to, acc)
		return
	}
	f(room, false)
	d.call("sum_rows", computeSuffix[T](), parts, cols, to, room, parts, cols, acc)
}
