package runtime

import (
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/tensors"
)

// View returns n elements of the rank's arena from byte offset off. It panics if they are not all in the arena, because
// the memory plan was wrong.
func View[T num.Stored | int32](r *rank.Rank, off, n int) []T {
	return tensors.View[T](&r.Store, off, n)
}

// RoundingKey returns the key of the random bits of an update's stochastic rounding. The upper 16 bits of number n of
// its stream belong to the model's element n. The key depends on the number of the update, in h, and not on skipped
// steps, so that a resumed run has the same bits.
func RoundingKey(r *rank.Rank, h *rank.Hyper) uint64 { return rank.RoundingKeyOf(r, h) }

// MainLine returns the name of the line of one of the program's groups.
func MainLine(group int) string { return rank.MainLine(group) }

// Check ends the rank's command with err if it is not nil. It is for functions that generated code calls, which has no
// error results.
func Check(err error) { rank.Check(err) }
