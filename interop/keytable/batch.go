package keytable

import (
	"fmt"
	"math/bits"

	"github.com/planc-dev/planc/ir/spec/strict"
)

// MostSequences is the largest global batch of a job (train.global_batch in package spec).
const MostSequences = 100_000_000

// mostCount is the largest number that files may have: above it, numbers in JSON are not exact.
const mostCount = 1 << 53

// Product returns a product of numbers that are not negative, or 2^53 if it is larger.
func Product(factors ...int) int {
	product := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(product, uint64(f))
		if high > 0 {
			low = mostCount
		}
		product = min(low, mostCount)
	}
	return int(product)
}

// GlobalBatch returns the product of a micro-batch, the number of micro-batches and the data-parallel ranks. It reports
// a batch that is too large for a job; ok is false then. stepsKey is "" if the file does not say the number.
func (r *Reader) GlobalBatch(microKey string, micro int, stepsKey string, steps, ranks int) (batch int, ok bool) {
	batch = Product(micro, steps, ranks)
	if batch <= MostSequences {
		return batch, true
	}
	key := microKey
	if steps > micro {
		key = stepsKey
	}
	factors := fmt.Sprintf("%s %d", microKey, micro)
	if stepsKey != "" {
		factors += fmt.Sprintf(" · %s %d", stepsKey, steps)
	}
	r.Wrong(key, strict.OutOfRange, "", "%s · %d data-parallel ranks are more than %d sequences, the largest batch "+
		"that planc supports: lower %s", factors, ranks, MostSequences, key)
	return batch, false
}
