package cpu

import "github.com/planc-dev/planc/runtime/cpu/elem"

// here returns an id's row among the n from lo on, and whether it is there.
func here(id int32, lo, n int) (int, bool) {
	i := int(id) - lo
	return i, uint(i) < uint(n)
}

func embed[F Float](y, table []F, ids []int32, cols, lo, n int) {
	for i, id := range ids {
		yi := y[i*cols:][:cols]
		if r, ok := here(id, lo, n); ok {
			copy(yi, table[r*cols:][:cols])
		} else {
			clear(yi)
		}
	}
}

func embedGrad[F Float](dtable, dy []F, ids []int32, cols, lo, n int, acc bool) {
	embedGradBut(dtable, dy, ids, noID, cols, lo, n, acc)
}

// noID is an id that no token has.
const noID = -1

func embedGradBut[F Float](dtable, dy []F, ids []int32, but, cols, lo, n int, acc bool) {
	if !acc {
		clear(dtable)
	}
	for i, id := range ids {
		if r, ok := here(id, lo, n); ok && int(id) != but {
			elem.Add(dtable[r*cols:][:cols], dy[i*cols:][:cols])
		}
	}
}
