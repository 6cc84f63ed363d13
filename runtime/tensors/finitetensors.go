package tensors

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
)

// finiteTensor returns an input error if an element of a tensor is not finite. x begins at element first.
func finiteTensor[F Float](name string, first int, x []F) error {
	err := ckpt.Finite(x)
	if bad := (*ckpt.NonfiniteError)(nil); errors.As(err, &bad) {
		bad.Tensor, bad.Elem = name, bad.Elem+int64(first)
		return exit.Wrap(exit.Input, fmt.Errorf("%w; training cannot begin with it", bad))
	}
	return err
}

// nonfinite returns the first element that is not finite in the tensors of some kinds that this rank saves; nil if
// there is none.
func nonfinite[F Float](r *Store, kinds []kind) (bad *ckpt.NonfiniteError) {
	var b [BlockElems]F
	ts := Of(r.Data, r.Coord)
	for i := range ts {
		for _, k := range kinds {
			if !k.isSaved(r, &ts[i]) {
				continue
			}
			lo, hi, at := k.piece(r, &ts[i])
			for from := lo; from < hi; from += BlockElems {
				part := b[:min(BlockElems, hi-from)]
				Read(r, k.elem, at+(from-lo)*k.elem.Size(), part)
				if ckpt.Finite(part) == nil {
					continue
				}
				bad = firstBad(&ts[i], k.suffix, from, part)
				if bad != nil {
					return bad
				}
			}
		}
	}
	return nil
}

// firstBad returns the first element of x that is not finite; nil if only padding is not finite. x holds the tensor's
// local elements from first.
func firstBad[F Float](t *Tensor, suffix string, first int, x []F) (bad *ckpt.NonfiniteError) {
	t.Runs(first, first+len(x), func(local, logical, n int) {
		err := ckpt.Finite(x[local-first:][:n])
		if e := (*ckpt.NonfiniteError)(nil); bad == nil && errors.As(err, &e) {
			bad = &ckpt.NonfiniteError{Tensor: t.Name + suffix, Elem: int64(logical) + e.Elem, Value: e.Value}
		}
	})
	return bad
}
