package runtime

import (
	"github.com/planc-dev/planc/runtime/num"
)

// isNative reports whether numbers of type e are stored as F.
func isNative[F Float](e Elem) bool {
	var z F
	_, wide := any(z).(float64)
	return e == F64 && wide || e == F32 && !wide
}

// read converts the numbers of type e at byte offset at of the arena to dst.
func read[F Float](r *Rank, e Elem, at int, dst []F) {
	switch n := len(dst); e {
	case F32:
		num.Load(dst, View[float32](r, at, n))
	case F64:
		num.Load(dst, View[float64](r, at, n))
	case BF16:
		num.Load(dst, View[num.BF16](r, at, n))
	case F16:
		num.Load(dst, View[num.F16](r, at, n))
	}
}

// write stores src as numbers of type e at byte offset at of the arena, rounded to nearest.
func write[F Float](r *Rank, e Elem, at int, src []F) {
	switch n := len(src); e {
	case F32:
		num.Store(View[float32](r, at, n), src)
	case F64:
		num.Store(View[float64](r, at, n), src)
	case BF16:
		num.Store(View[num.BF16](r, at, n), src)
	case F16:
		num.Store(View[num.F16](r, at, n), src)
	}
}

// blockElems is how many numbers are converted at a time, so that they stay in the L1 cache.
const blockElems = 2048

// conversionBuffer returns the rank's buffer for four blocks of numbers. It is allocated at the first call.
func conversionBuffer[F Float](r *Rank) []F {
	b, ok := r.converted.([]F)
	if !ok {
		b = make([]F, 4*blockElems)
		r.converted = b
	}
	return b
}

// widenFrom returns n numbers as F: in place if they are stored so, else converted into b.
func widenFrom[F Float](r *Rank, e Elem, at, n int, b []F) []F {
	if isNative[F](e) {
		return View[F](r, at, n)
	}
	read(r, e, at, b[:n])
	return b[:n]
}

// storeBack stores numbers from widenFrom, unless they are in place.
func storeBack[F Float](r *Rank, e Elem, at int, x []F) {
	if !isNative[F](e) {
		write(r, e, at, x)
	}
}
