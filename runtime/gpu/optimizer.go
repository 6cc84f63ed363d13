//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/module"
)

// SumLoss sums the loss over a group.
func (d *device) SumLoss(group int) {
	if c := d.group(group); c != nil {
		at := d.step.result(lossSum)
		rt.Check(c.AllReduce(d.compute.stream, at, at, 1, cuda.Float64, cuda.Sum))
	}
}

// ClipGradients computes, on the device, the norm of the whole gradient, the factor that clips it, and
// whether the step is skipped, as [rt.ClipGradients] specifies.
func (d *device) ClipGradients(world int) {
	d.squares()
	d.routers.checkLimits(d)
	if c := d.group(world); c != nil {
		pair := d.step.result(squaresSum)
		rt.Check(c.AllReduce(d.compute.stream, pair, pair, clipped-squaresSum, cuda.Float64, cuda.Sum))
	}
	d.run("clip", "f64", 1, 1, d.args().Pointer(d.step.result(clipped)).Pointer(d.step.result(squaresSum)).
		Pointer(d.step.value(lossScale)).Float64(d.rank.Hyper.ClipNorm))
}

// squares computes the sum of squares of this rank's part of the gradients, and whether its loss is not
// finite.
func (d *device) squares() {
	var runs []rt.Extent
	parts := 0
	for i := range d.rank.Stage.Buckets {
		if b := d.rank.BucketPart(i); b.Counts {
			for _, x := range b.Squares {
				if x.N > 0 {
					runs = append(runs, x)
					parts += kernels.Blocks(x.N)
				}
			}
		}
	}
	e, part := d.rank.Program.TensorTypes().Grads, d.scratch(parts*8)
	at := part
	for _, x := range runs {
		d.run("sum_squares", suffixOf(e), 1, x.N, d.args().Pointer(at).Pointer(d.ptr(x.At)).Uint64(uint64(x.N)))
		at += cuda.Pointer(kernels.Blocks(x.N) * 8)
	}
	d.run("norm_pair", "f64", 1, parts,
		d.args().Pointer(d.step.result(squaresSum)).Pointer(part).Pointer(d.step.result(lossSum)).Int32(int32(parts)))
}

// Optimize updates this rank's part of a bucket, unless the device decides that the step is skipped.
func (d *device) Optimize(bucket int) {
	for _, u := range d.rank.BucketPart(bucket).Updates {
		d.update(&u)
	}
}

// update updates a run of parameters.
func (d *device) update(u *rt.Update) {
	p := d.rank.Program
	types := updateTypes(p.TensorTypes())
	a := d.args().Pointer(d.ptr(u.Param)).Pointer(d.optionalPtr(u.Master)).Pointer(d.ptr(u.Grad))
	if u.Load != nil {
		b := &p.Batch
		all := float64(b.GlobalBatch) * float64(b.SeqLen) * float64(u.Load.Choices)
		d.run("level", types, 1, u.N, a.Pointer(d.step.result(clipped)).
			Float64(d.rank.Hyper.BiasRate).Float64(float64(u.Load.Dims[0].Size)).Float64(all).
			Pointer(d.roundingKey(u)).Pointer(d.elementNumbers(u)).Uint64(uint64(u.N)))
		return
	}
	name := "sgd"
	a.Pointer(d.optionalPtr(u.Moment1))
	if p.Optim != rt.SGD {
		name = "adam"
		a.Pointer(d.optionalPtr(u.Moment2))
	}
	a.Pointer(d.step.result(clipped)).Pointer(d.step.rates(u)).Pointer(d.roundingKey(u)).Pointer(d.elementNumbers(u))
	d.run(name, types, 1, u.N, a.Uint64(uint64(u.N)))
}

// checkUpdateTypes returns an error if there are no update kernels for the types.
func checkUpdateTypes(t rt.Types) error {
	if !slices.Contains(module.Family("adam").Types, updateTypes(t)) {
		return fmt.Errorf("not supported on GPUs: an optimizer with parameters in %v, gradients in %v and "+
			"moments in %v",
			t.Params, t.Grads, t.Moments)
	}
	return nil
}

// updateTypes returns the suffix of the names of the kernels that update parameters.
func updateTypes(t rt.Types) string {
	return suffixOf(t.Params) + "_" + suffixOf(t.Grads) + "_" + suffixOf(t.Moments)
}

// roundingKey returns the address of the key for stochastic rounding of the parameters. It is null for
// parameters that are rounded to nearest.
func (d *device) roundingKey(u *rt.Update) cuda.Pointer {
	if u.Numbers == nil {
		return 0
	}
	return d.step.value(roundingKey)
}

// numbersKey identifies the table of element numbers of the parameters that start at an element of the flat
// space.
type numbersKey struct{ first int }

// elementNumbers returns the address of the numbers of the elements, in the layout that
// cuda/kernels/optimizer.cu reads. It is null if they are not needed.
func (d *device) elementNumbers(u *rt.Update) cuda.Pointer {
	if u.Numbers == nil {
		return 0
	}
	return d.constant(numbersKey{u.First}, func() (b []byte) {
		words := []int{u.Numbers.From, u.Numbers.First, len(u.Numbers.Digits)}
		for _, digit := range u.Numbers.Digits {
			words = append(words, digit.Width, digit.Stride)
		}
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, uint64(w))
		}
		return b
	})
}
