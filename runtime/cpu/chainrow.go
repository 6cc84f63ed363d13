package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/vec"
)

// link applies a link's operation to rows rows.
func (r *chainRun[F]) link(w *bands[F], l *Link, row, rows int, to []F) {
	n := len(to) / rows
	read := func(i int) []F {
		if r.c.Operands[i].At == PerCol {
			return r.read(w, i, row, 0, n)
		}
		return r.read(w, i, row, 0, len(to))
	}
	switch l.Do {
	case DoLayerNorm, DoRMSNorm:
		var bias []F
		if len(l.More) > 0 {
			bias = read(l.More[0])
		}
		w.norm(to, read(l.A), read(l.B), bias, rows, l)
		return
	case DoLayerNormDX, DoRMSNormDX:
		w.normDX(to, read(l.A), read(l.B), read(l.More[0]), rows, l)
		return
	}
	for i := range rows {
		at := to[i*n:][:n]
		switch l.Do {
		case DoExpGrad:
			expRow(at, read(l.B)[i*n:][:n], r.value(l.A, row+i), r.value(l.More[0], row+i), r.x[l.More[1]].n)
		case DoPickGrad:
			clear(at)
			r.pick(at, l, row+i, l.A)
		case DoAddPick:
			if a := read(l.A)[i*n:][:n]; n > 0 && &a[0] != &at[0] {
				copy(at, a)
			}
			r.pick(at, l, row+i, l.B)
		}
	}
}

// pick adds a row's number, rounded like the link's result, at the row's index.
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

// vectorsFor returns the vector loops in use if F is float32.
func vectorsFor[F Float]() *vec.Kernels {
	if _, ok := any(F(0)).(float32); ok {
		return vec.Now()
	}
	return nil
}

// norm computes LayerNorm or RMSNorm of rows rows.
func (w *bands[F]) norm(y, x, gain, bias []F, rows int, l *Link) {
	centred := l.Do == DoLayerNorm
	if k := vectorsFor[F](); k != nil {
		normRows(k, single(y), single(x), single(gain), single(bias), w.mean[:rows], w.rstd[:rows], float32(l.C),
			float32(l.Base), centred)
		return
	}
	moments := momentsOf[F](centred)
	for n := len(gain); len(y) >= n && n > 0; y, x = y[n:], x[n:] {
		mean, rstd := moments(x[:n], l.C)
		scaleRow(y[:n], x[:n], gain, F(l.Base), mean, rstd)
		if bias != nil {
			elem.Add(y[:n], bias)
		}
	}
}

// momentsOf returns the function for a row's moments. Its mean is 0 if the mean is not subtracted.
func momentsOf[F Float](centred bool) func(x []F, eps float64) (mean, rstd float64) {
	if centred {
		return moments[F]
	}
	return rms[F]
}

// normDX computes the gradient of norm with respect to its input.
func (w *bands[F]) normDX(dx, dy, x, gain []F, rows int, l *Link) {
	centred := l.Do == DoLayerNormDX
	if k := vectorsFor[F](); k != nil {
		normRowsDX(k, single(dx), single(dy), single(x), single(gain), w.mean[:rows], w.rstd[:rows], float32(l.C),
			float32(l.Base), centred)
		return
	}
	moments := momentsOf[F](centred)
	for n := len(gain); len(dx) >= n && n > 0; dx, dy, x = dx[n:], dy[n:], x[n:] {
		mean, rstd := moments(x[:n], l.C)
		normGrad(dx[:n], dy[:n], x[:n], gain, F(l.Base), mean, rstd, centred)
	}
}

// expRow computes a row of LogSumExpGrad.
func expRow[F Float](dx, x []F, dl, l F, valid int) {
	if math.IsInf(float64(l), -1) {
		clear(dx)
		return
	}
	if k := vectorsFor[F](); k != nil {
		k.ExpScale(single(dx[:valid]), single(x), float32(l), float32(dl))
	} else {
		for j, v := range x[:valid] {
			dx[j] = F(dl * F(elem.Exp[F](float64(v-l))))
		}
	}
	clear(dx[valid:])
}
