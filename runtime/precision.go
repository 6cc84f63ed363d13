package runtime

import (
	"github.com/planc-dev/planc/runtime/num"
)

// types are the program's.
func (p *Program) types() Types {
	if p.Types == (Types{}) {
		return Types{Compute: p.Elem, Params: p.Elem, Grads: p.Elem, Reduce: p.Elem, Master: p.Elem, Moments: p.Elem}
	}
	return p.Types
}

// TensorTypes says in which types the program keeps its tensors.
func (p *Program) TensorTypes() Types { return p.types() }

// hasMaster tells whether the optimizer has a copy of the parameters.
func (p *Program) hasMaster() bool { t := p.types(); return t.Master != t.Params }

// isNative tells whether numbers of type e are stored as F.
func isNative[F Float](e Elem) bool {
	var z F
	_, wide := any(z).(float64)
	return e == F64 && wide || e == F32 && !wide
}

// read is dst = the numbers of type e that begin at byte at of the arena.
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

// write stores src as numbers of type e from byte at of the arena on, each rounded to the nearest.
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

// blockElems is how many numbers are widened at a time, so that they stay in the first cache.
const blockElems = 2048

// conversionBuffer are the rank's room for four blocks of numbers, made when they are first wanted.
func conversionBuffer[F Float](r *Rank) []F {
	b, ok := r.converted.([]F)
	if !ok {
		b = make([]F, 4*blockElems)
		r.converted = b
	}
	return b
}

// openDevices is n numbers as F: where they are, or widened into b.
func widenFrom[F Float](r *Rank, e Elem, at, n int, b []F) []F {
	if isNative[F](e) {
		return View[F](r, at, n)
	}
	read(r, e, at, b[:n])
	return b[:n]
}

// storeBack stores what take gave, if that was not in its place.
func storeBack[F Float](r *Rank, e Elem, at int, x []F) {
	if !isNative[F](e) {
		write(r, e, at, x)
	}
}
