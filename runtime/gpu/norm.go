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

// NormGrads are the operands of all gradients of a norm but the accumulators of the gain's and the bias's: DX = the
// gradient of X, plus More, which may be empty. Unit adds 1 to the gain.
type NormGrads[T num.Stored] struct {
	DX, DY, More, X, Gain Buf[T]
	Rows, Cols            int
	Eps                   float64
	Unit                  bool
}

// LayerNormGrads computes LayerNormDX, and adds to the gradients of the gain and the bias. dbias may be empty. If no
// kernel computes them together, it does nothing and returns false.
func LayerNormGrads[G, T num.Stored](r *rt.Rank, s NormGrads[T], dgain, dbias Buf[G]) bool {
	d := deviceOf(r)
	p, ok := newNormParts(d, &s, dgain, dbias)
	if !ok {
		return false
	}
	d.call(fmt.Sprint("layer_norm_grads", p.packs), suffix[T](), s.Rows, s.Cols, addr(d, s.DX), p.gain, p.bias,
		addr(d, s.DY), addr(d, s.More), addr(d, s.X), addr(d, s.Gain), s.Rows, s.Cols, s.Eps)
	p.sum(d)
	return true
}

// RMSNormGrads is LayerNormGrads for RMSNormDX and a norm without bias.
func RMSNormGrads[G, T num.Stored](r *rt.Rank, s NormGrads[T], dgain Buf[G]) bool {
	d := deviceOf(r)
	p, ok := newNormParts(d, &s, dgain, Buf[G]{})
	if !ok {
		return false
	}
	d.call(fmt.Sprint("rms_norm_grads", p.packs), suffix[T](), s.Rows, s.Cols, addr(d, s.DX), p.gain,
		addr(d, s.DY), addr(d, s.More), addr(d, s.X), addr(d, s.Gain), s.Rows, s.Cols, s.Eps, s.Unit)
	p.sum(d)
	return true
}

// normParts are the sums over rows of a norm's gradients: in parts in scratch memory, then in their accumulators.
type normParts struct {
	packs, parts, cols int
	gain, bias         cuda.Pointer // parts; bias is null if there is none
	toGain, toBias     cuda.Pointer
}

// newNormParts reserves the parts. ok is false if the kernels do not support the accumulators' type, the size of the
// rows, or the operands' addresses.
func newNormParts[G, T num.Stored](d *device, s *NormGrads[T], dgain, dbias Buf[G]) (p normParts, ok bool) {
	packs, parts := kernels.NormGrads(s.Rows, s.Cols)
	if packs == 0 || size[T]() != 2 || suffix[G]() != "f32" {
		return p, false
	}
	for _, b := range []Buf[T]{s.DX, s.DY, s.More, s.X, s.Gain} {
		if addr(d, b)%16 != 0 {
			return p, false
		}
	}
	room := d.scratchParts(4*parts*s.Cols, 4*parts*s.Cols)
	p = normParts{packs: packs, parts: parts, cols: s.Cols, gain: room[0], toGain: addr(d, dgain)}
	if dbias.N > 0 {
		p.bias, p.toBias = room[1], addr(d, dbias)
	}
	return p, true
}

// sum adds the parts to the accumulators.
func (p *normParts) sum(d *device) {
	d.call("sum_rows", "f32", p.parts, p.cols, p.toGain, p.gain, p.parts, p.cols, true)
	if p.bias != null {
		d.call("sum_rows", "f32", p.parts, p.cols, p.toBias, p.bias, p.parts, p.cols, true)
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
