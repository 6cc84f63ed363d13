//go:build cuda && linux

package gpu

import (
	"fmt"

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

// LayerNormGrads computes LayerNormDX, plus more, and adds to the gradients of the gain and the bias. more and dbias
// may be empty. If no kernel computes them together, it does nothing and returns false.
func LayerNormGrads[G, T num.Stored](r *rt.Rank, dx Buf[T], dgain, dbias Buf[G], dy, more, x, gain Buf[T], rows, cols int,
	eps float64) bool {
	d := deviceOf(r)
	g, ok := newNormGrads(d, dgain, dbias, rows, cols, dx, dy, more, x, gain)
	if !ok {
		return false
	}
	d.call(fmt.Sprint("layer_norm_grads", g.packs), suffix[T](), rows, cols, addr(d, dx), g.gain, g.bias, addr(d, dy),
		addr(d, more), addr(d, x), addr(d, gain), rows, cols, eps)
	g.sum(d)
	return true
}

// RMSNormGrads is LayerNormGrads for RMSNormDX and a norm without bias.
func RMSNormGrads[G, T num.Stored](r *rt.Rank, dx Buf[T], dgain Buf[G], dy, more, x, gain Buf[T], rows, cols int,
	eps float64, unit bool) bool {
	d := deviceOf(r)
	g, ok := newNormGrads(d, dgain, Buf[G]{}, rows, cols, dx, dy, more, x, gain)
	if !ok {
		return false
	}
	d.call(fmt.Sprint("rms_norm_grads", g.packs), suffix[T](), rows, cols, addr(d, dx), g.gain, addr(d, dy),
		addr(d, more), addr(d, x), addr(d, gain), rows, cols, eps, unit)
	g.sum(d)
	return true
}

// normGrads are the sums over rows of a norm's gradients: in parts in scratch memory, then in their accumulators.
type normGrads struct {
	packs, parts, cols int
	gain, bias         cuda.Pointer // parts; bias is null if there is none
	toGain, toBias     cuda.Pointer
}

// newNormGrads reserves the parts. ok is false if the kernels do not support the accumulators' type, the size of the
// rows, or the operands' addresses.
func newNormGrads[G, T num.Stored](d *device, dgain, dbias Buf[G], rows, cols int, operands ...Buf[T]) (g normGrads,
	ok bool) {
	packs, parts := kernels.NormGrads(rows, cols)
	if packs == 0 || size[T]() != 2 || suffix[G]() != "f32" {
		return g, false
	}
	for _, b := range operands {
		if addr(d, b)%16 != 0 {
			return g, false
		}
	}
	room := d.scratchParts(4*parts*cols, 4*parts*cols)
	g = normGrads{packs: packs, parts: parts, cols: cols, gain: room[0], toGain: addr(d, dgain)}
	if dbias.N > 0 {
		g.bias, g.toBias = room[1], addr(d, dbias)
	}
	return g, true
}

// sum adds the parts to the accumulators.
func (g *normGrads) sum(d *device) {
	d.call("sum_rows", "f32", g.parts, g.cols, g.toGain, g.gain, g.parts, g.cols, true)
	if g.bias != null {
		d.call("sum_rows", "f32", g.parts, g.cols, g.toBias, g.bias, g.parts, g.cols, true)
	}
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
