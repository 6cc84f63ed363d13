package search

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// Entries leave the queue in the order of their bounds, those with equal bounds in the order of the space, in any
// order of insertion.
func TestQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	var q queue
	var left []entry
	for order := range 4000 {
		if e := (entry{floor: costmodel.Seconds(r.IntN(300)), order: order}); r.IntN(3) > 0 || len(left) == 0 {
			q.push(e)
			left = append(left, e)
			continue
		}
		first := slices.MinFunc(left, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.floor, b.floor), a.order-b.order)
		})
		if got := q.pop(); got != first {
			t.Fatalf("of %d entries %v is first, want %v", len(left), got, first)
		}
		left = slices.DeleteFunc(left, func(e entry) bool { return e == first })
	}
	if len(q) != len(left) || len(left) < 1000 {
		t.Errorf("%d entries wait, want %d, and many", len(q), len(left))
	}
}
