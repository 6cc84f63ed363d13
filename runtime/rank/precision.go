package rank

import (
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// conversionBuffer returns the rank's buffer for four blocks of numbers. It is allocated at the first call.
func conversionBuffer[F tensors.Float](r *Rank) []F {
	b, ok := r.converted.([]F)
	if !ok {
		b = make([]F, 4*tensors.BlockElems)
		r.converted = b
	}
	return b
}

// widenFrom returns n numbers as F: in place if they are stored so, else converted into b.
func widenFrom[F tensors.Float](r *Rank, e program.Elem, at, n int, b []F) []F {
	if tensors.IsNative[F](e) {
		return tensors.View[F](&r.Store, at, n)
	}
	tensors.Read(&r.Store, e, at, b[:n])
	return b[:n]
}

// storeBack stores numbers from widenFrom, unless they are in place.
func storeBack[F tensors.Float](r *Rank, e program.Elem, at int, x []F) {
	if !tensors.IsNative[F](e) {
		tensors.Write(&r.Store, e, at, x)
	}
}
