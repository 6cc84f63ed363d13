package runtime

import (
	"slices"

	"github.com/planc-dev/planc/runtime/cpu"
)

// Optimize updates this rank's part of a bucket with the program's optimizer, unless the step is skipped. Gradients are
// multiplied by Clip. Weight decay applies to parameters with Param.Decay.
func Optimize[F Float](r *Rank, bucket int) {
	if r.Skip {
		return
	}
	if r.Device != nil {
		r.Device.Optimize(bucket)
		return
	}
	b, spec := &r.buckets[bucket], &r.Stage.Buckets[bucket]
	u := updater[F]{r: r, types: r.Program.TensorTypes(), hyper: &r.Hyper, clip: r.Clip}
	whole := isNative[F](u.types.Params) && isNative[F](u.types.Grads) && isNative[F](u.types.Moments)
	if !whole {
		u.converted = conversionBuffer[F](r)
	}
	for _, s := range b.spans {
		if s.load != nil {
			u.balance(bucket, &s, spec.State-b.lo)
			continue
		}
		for lo := s.lo; lo < s.hi; {
			n := s.hi - lo
			if !whole {
				n = min(n, blockElems)
			}
			u.update(bucket, s.decay, lo, spec.State+lo-b.lo, n)
			lo += n
		}
	}
}

// updater updates parameters in place, or block by block if the kernels do not compute in the types of the parameters
// or their state.
type updater[F Float] struct {
	r         *Rank
	types     Types
	hyper     *Hyper
	clip      float64
	converted []F // buffer for a block each of parameters, gradients and moments
}

// update updates n parameters of a bucket from element at of the flat space; their state begins at element state of its
// regions. If there is a master copy, the kernel updates it, and the parameters are rounded from it.
func (u *updater[F]) update(bucket int, decay bool, at, state, n int) {
	r, a := u.r, &u.r.Stage.Arena
	elem, from := u.types.Params, r.paramAt(bucket, at)
	if r.Program.HasMaster() {
		elem = u.types.Master
		from = a.Master.Offset + state*elem.Size()
	}
	room := func(i int) []F { return u.converted[min(len(u.converted), i*blockElems):] }
	param := widenFrom(r, elem, from, n, room(0))
	grad := widenFrom(r, u.types.Grads, r.gradAt(bucket, at), n, room(1))
	first, second := a.Moment1.Offset+state*u.types.Moments.Size(), a.Moment2.Offset+state*u.types.Moments.Size()
	var m, v []F
	if a.Moment1.Size > 0 {
		m = widenFrom(r, u.types.Moments, first, n, room(2))
	}
	if a.Moment2.Size > 0 {
		v = widenFrom(r, u.types.Moments, second, n, room(3))
	}
	u.optimize(decay, param, grad, m, v)
	u.put(bucket, at, elem, from, param)
	if m != nil {
		storeBack(r, u.types.Moments, first, m)
	}
	if v != nil {
		storeBack(r, u.types.Moments, second, v)
	}
}

// put stores updated parameters of a bucket, from element at of the flat space: as elem from byte from, and rounded as
// parameters if that is their master copy.
func (u *updater[F]) put(bucket, at int, elem Elem, from int, x []F) {
	r := u.r
	if r.Program.StochasticRounding {
		storeStochastic(r, bucket, at, x)
		return
	}
	storeBack(r, elem, from, x)
	if r.Program.HasMaster() {
		write(r, u.types.Params, r.paramAt(bucket, at), x)
	}
}

// optimize runs the kernel of the program's optimizer.
func (u *updater[F]) optimize(decay bool, param, grad, m, v []F) {
	r, h, kernels := u.r, u.hyper, cpu.Table[F]()
	wd := h.WeightDecay
	if !decay {
		wd = 0
	}
	if r.Program.Optim == SGD {
		kernels.SGD(param, grad, m, cpu.SGDStep{LR: h.LR, Momentum: h.Momentum, WeightDecay: wd, Scale: u.clip})
		return
	}
	step := cpu.AdamStep{LR: h.LR, Beta1: h.Beta1, Beta2: h.Beta2, Eps: h.Eps, WeightDecay: wd, Scale: u.clip, T: h.T}
	if r.Program.Optim == AdamW {
		kernels.AdamW(param, grad, m, v, step)
	} else {
		kernels.Adam(param, grad, m, v, step)
	}
}

// spansOf returns the parts of the tensors in [lo, hi) of the flat space, in order. Adjacent parts with the same
// treatment are joined.
func spansOf(ts []tensor, lo, hi int) []span {
	var out []span
	for _, t := range ts {
		s := span{lo: max(lo, t.offset), hi: min(hi, t.offset+t.local), decay: t.param.Decay}
		if t.param.Choices > 0 {
			s.load = t.param
		}
		if s.lo < s.hi {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b span) int { return a.lo - b.lo })
	joined := out[:0]
	for _, s := range out {
		if n := len(joined); n > 0 && joined[n-1].hi == s.lo && joined[n-1].decay == s.decay &&
			joined[n-1].load == s.load {
			joined[n-1].hi = s.hi
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
