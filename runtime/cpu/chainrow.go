package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/vec"
)

// link does a link's operation for a row.
func (r *chainRun[F]) link(w *bands[F], l *Link, row int, to []F) {
	n := len(to)
	read := func(i int) []F { return r.read(w, i, row, 0, n) }
	switch l.Do {
	case DoLayerNorm, DoRMSNorm:
		var bias []F
		if len(l.More) > 0 {
			bias = read(l.More[0])
		}
		normRow(to, read(l.A), read(l.B), bias, l.C, F(l.Base), l.Do == DoLayerNorm)
	case DoLayerNormDX, DoRMSNormDX:
		normRowDX(to, read(l.A), read(l.B), read(l.More[0]), l.C, F(l.Base), l.Do == DoLayerNormDX)
	case DoExpGrad:
		expRow(to, read(l.B), r.value(l.A, row), r.value(l.More[0], row), r.x[l.More[1]].n)
	case DoPickGrad:
		clear(to)
		r.pick(to, l, row, l.A)
	case DoAddPick:
		if a := read(l.A); n > 0 && &a[0] != &to[0] {
			copy(to, a)
		}
		r.pick(to, l, row, l.B)
	}
}

// pick adds a row's number, rounded as the link's result is, at the row's index.
func (r *chainRun[F]) pick(to []F, l *Link, row, number int) {
	ids := &r.x[l.More[0]]
	if j, ok := here(ids.ids[row], ids.lo, ids.n); ok {
		v := [1]F{r.value(number, row)}
		if l.Round != num.Native {
			num.Round(single(v[:]), l.Round)
		}
		to[j] += v[0]
	}
}

// vectorsFor are the loops of the vectors that the machine has, if F is float32.
func vectorsFor[F Float]() *vec.Kernels {
	if _, ok := any(F(0)).(float32); ok {
		return vec.Now()
	}
	return nil
}

// normRow is a row of LayerNorm, or of RMSNorm if it is not centred.
func normRow[F Float](y, x, gain, bias []F, eps float64, base F, centred bool) {
	if k := vectorsFor[F](); k != nil {
		mean, rstd := rowMoments(k, single(x), float32(eps), centred)
		if bias == nil {
			k.Norm(single(y), single(x), single(gain), mean, rstd, float32(base))
		} else {
			k.NormBias(single(y), single(x), single(gain), single(bias), mean, rstd, float32(base))
		}
		return
	}
	of := rms[F]
	if centred {
		of = moments[F]
	}
	mean, rstd := of(x, eps)
	scaleRow(y, x, gain, base, mean, rstd)
	if bias != nil {
		add(y, bias)
	}
}

// normRowDX is a row of the gradient by a norm's operand.
func normRowDX[F Float](dx, dy, x, gain []F, eps float64, base F, centred bool) {
	if k := vectorsFor[F](); k != nil {
		normVectorsDX(k, single(dx), single(dy), single(x), single(gain), float32(eps), float32(base), centred)
		return
	}
	of := rms[F]
	if centred {
		of = moments[F]
	}
	mean, rstd := of(x, eps)
	normGrad(dx, dy, x, gain, base, mean, rstd, centred)
}

// expRow is a row of LogSumExpGrad.
func expRow[F Float](dx, x []F, dl, l F, valid int) {
	if math.IsInf(float64(l), -1) {
		clear(dx)
		return
	}
	if k := vectorsFor[F](); k != nil {
		k.ExpScale(single(dx[:valid]), single(x), float32(l), float32(dl))
	} else {
		for j, v := range x[:valid] {
			dx[j] = F(dl * F(exp[F](float64(v-l))))
		}
	}
	clear(dx[valid:])
}
