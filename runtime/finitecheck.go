package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
)

// finiteTensor returns an input error if an element of a tensor is not finite. x begins at element first.
func finiteTensor[F Float](name string, first int, x []F) error {
	err := ckpt.Finite(x)
	if bad := (*ckpt.NonfiniteError)(nil); errors.As(err, &bad) {
		bad.Tensor, bad.Elem = name, bad.Elem+int64(first)
		return exit.With(exit.Input, fmt.Errorf("%w; training cannot begin with it", bad))
	}
	return err
}

// checkState ends the run if a tensor for the checkpoint is not finite. All processes of a launch then end.
func (r *run) checkState() error {
	found := make([]*ckpt.NonfiniteError, len(r.crew.ranks))
	kinds := slices.Concat(r.p.weightKinds(), r.p.momentKinds())
	err := r.crew.do(func(k *Rank) {
		if r.p.Elem == F64 {
			found[k.ID] = nonfinite[float64](k, kinds)
		} else {
			found[k.ID] = nonfinite[float32](k, kinds)
		}
	})
	if err != nil {
		return err
	}
	own := ""
	for _, bad := range found {
		if bad != nil {
			own = bad.Error()
			break
		}
	}
	all, err := r.team.Texts(own)
	if err != nil {
		return err
	}
	for _, text := range all {
		if text == "" {
			continue
		}
		r.metrics.Event(r.done.step, "stop", text)
		return exit.Errorf(exit.Nonfinite, "step %d is not saved: %s. %s; %s", r.done.step, text,
			r.smallerUpdatesAdvice(), r.goodCheckpointAdvice())
	}
	return nil
}

// goodCheckpointAdvice says which checkpoint to continue when the current state cannot be used.
func (r *run) goodCheckpointAdvice() string {
	if r.res.Checkpoint == "" {
		return "no checkpoint was saved before: start over (--resume never)"
	}
	return fmt.Sprintf("the last good checkpoint is of step %d; to continue, resume from %s", r.goodStep,
		r.res.Checkpoint)
}

// nonfinite returns the first element that is not finite in the tensors of some kinds that this rank saves; nil if
// there is none.
func nonfinite[F Float](r *Rank, kinds []kind) (bad *ckpt.NonfiniteError) {
	var b [blockElems]F
	ts := tensors(r.Program, r.Coord)
	for i := range ts {
		for _, k := range kinds {
			if !k.isSaved(r, &ts[i]) {
				continue
			}
			lo, hi, at := k.piece(r, &ts[i])
			for from := lo; from < hi; from += blockElems {
				part := b[:min(blockElems, hi-from)]
				read(r, k.elem, at+(from-lo)*k.elem.Size(), part)
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
func firstBad[F Float](t *tensor, suffix string, first int, x []F) (bad *ckpt.NonfiniteError) {
	t.runs(first, first+len(x), func(local, logical, n int) {
		err := ckpt.Finite(x[local-first:][:n])
		if e := (*ckpt.NonfiniteError)(nil); bad == nil && errors.As(err, &e) {
			bad = &ckpt.NonfiniteError{Tensor: t.name + suffix, Elem: int64(logical) + e.Elem, Value: e.Value}
		}
	})
	return bad
}
