package rank

import (
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// Optimize updates this rank's part of a bucket with the program's optimizer, unless the step is skipped. Gradients are
// multiplied by Clip. Weight decay applies to parameters with Param.Decay, and Param.LRMultiplier scales the learning
// rate.
func Optimize[F tensors.Float](r *Rank, bucket int) {
	if r.Skip {
		return
	}
	if r.Device != nil {
		r.Device.Optimize(bucket)
		return
	}
	defer r.compute.End(beginPart(r, timeline.Optimizer, "update", "bucket", bucket))
	b, spec := &r.buckets[bucket], &r.Stage.Buckets[bucket]
	u := updater[F]{r: r, types: r.Program.TensorTypes(), hyper: &r.Hyper, clip: r.Clip}
	whole := tensors.IsNative[F](u.types.Params) && tensors.IsNative[F](u.types.Grads) &&
		tensors.IsNative[F](u.types.Moments)
	if !whole {
		u.converted = conversionBuffer[F](r)
	}
	for _, s := range b.spans {
		if s.Load != nil {
			u.balance(bucket, &s, spec.State-b.Lo)
			continue
		}
		for lo := s.Lo; lo < s.Hi; {
			n := s.Hi - lo
			if !whole {
				n = min(n, tensors.BlockElems)
			}
			u.update(bucket, &s, lo, spec.State+lo-b.Lo, n)
			lo += n
		}
	}
}

// updater updates parameters in place, or block by block if the kernels do not compute in the types of the parameters
// or their state.
type updater[F tensors.Float] struct {
	r         *Rank
	types     program.Types
	hyper     *Hyper
	clip      float64
	converted []F // buffer for a block each of parameters, gradients and moments
}

// update updates n parameters of a span of a bucket from element at of the flat space; their state begins at element
// state of its regions. If there is a master copy, the kernel updates it, and the parameters are rounded from it.
func (u *updater[F]) update(bucket int, s *tensors.Span, at, state, n int) {
	r, a := u.r, &u.r.Stage.Arena
	elem, from := u.types.Params, r.ParamAt(bucket, at)
	if r.Program.HasMaster() {
		elem = u.types.Master
		from = a.Master.Offset + state*elem.Size()
	}
	room := func(i int) []F { return u.converted[min(len(u.converted), i*tensors.BlockElems):] }
	param := widenFrom(r, elem, from, n, room(0))
	grad := widenFrom(r, u.types.Grads, r.GradAt(bucket, at), n, room(1))
	first, second := a.Moment1.Offset+state*u.types.Moments.Size(), a.Moment2.Offset+state*u.types.Moments.Size()
	var m, v []F
	if a.Moment1.Size > 0 {
		m = widenFrom(r, u.types.Moments, first, n, room(2))
	}
	if a.Moment2.Size > 0 {
		v = widenFrom(r, u.types.Moments, second, n, room(3))
	}
	u.optimize(s, param, grad, m, v)
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
func (u *updater[F]) put(bucket, at int, elem program.Elem, from int, x []F) {
	r := u.r
	if r.Program.StochasticRounding {
		storeStochastic(r, bucket, at, x)
		return
	}
	storeBack(r, elem, from, x)
	if r.Program.HasMaster() {
		tensors.Write(&r.Store, u.types.Params, r.ParamAt(bucket, at), x)
	}
}

// optimize runs the kernel of the program's optimizer.
func (u *updater[F]) optimize(s *tensors.Span, param, grad, m, v []F) {
	r, h, kernels := u.r, u.hyper, cpu.Table[F]()
	lr, wd := h.LR*s.Rate, h.WeightDecay
	if !s.Decay {
		wd = 0
	}
	if r.Program.Optim == program.SGD {
		kernels.SGD(param, grad, m, cpu.SGDStep{LR: lr, Momentum: h.Momentum, WeightDecay: wd, Scale: u.clip})
		return
	}
	step := cpu.AdamStep{LR: lr, Beta1: h.Beta1, Beta2: h.Beta2, Eps: h.Eps, WeightDecay: wd, Scale: u.clip, T: h.T}
	if r.Program.Optim == program.AdamW {
		kernels.AdamW(param, grad, m, v, step)
	} else {
		kernels.Adam(param, grad, m, v, step)
	}
}
