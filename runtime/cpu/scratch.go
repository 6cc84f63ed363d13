package cpu

import (
	"sync"
	"unsafe"
)

// scratch is the working memory of one call: half a megabyte for float32, so it comes from a pool.
type scratch[F Float] struct {
	b [nc / nr * kc][nr]F // a block of op(b): panels of nr columns, each kc long
	a [mc * kc]F          // a block of op(a), if that is a transpose: rows of kc

	// Attention's, for a block of keys and one of queries.
	p, dp    [qBlock * pRow]F
	max      [qBlocks * qBlock]F       // of the queries' scores so far; in the gradient, lse
	sum      [qBlocks * qBlock]float64 // of the queries' exponentials so far, or of a row's
	inner    [qBlock]F                 // of a query's output and its gradient
	own      [qBlock]float64           // of a row's exponentials
	factor   [qBlock]F                 // of the rows of what was computed before
	slope    [kBlock]F                 // of the softcap, at a row's scores
	seen     seen
	seeing   [qBlock]int // keys that have a gradient by each query, from the first on
	begun    int         // keys of the block that have a gradient
	k, kt, v packed[F]   // the keys, their transpose, the values; in the gradient, these transposed
	rows     packed[F]   // of queries, or of their outputs' gradient
	strip    strip       // of the product that is made
	ahead    ahead[F]
	halves   halved[F]
}

var pools [2]sync.Pool // of *scratch[float32] and *scratch[float64]

func poolOf[F Float]() *sync.Pool {
	var z F
	return &pools[unsafe.Sizeof(z)/8]
}

// borrow takes a scratch with arbitrary contents; giveBack returns it.
func borrow[F Float]() *scratch[F] {
	w, _ := poolOf[F]().Get().(*scratch[F])
	if w == nil {
		w = new(scratch[F])
	}
	return w
}

func (w *scratch[F]) giveBack() {
	for _, p := range []*packed[F]{&w.k, &w.kt, &w.v, &w.rows} {
		p.at = mat[F]{} // the pool keeps no caller's tensors
	}
	w.strip.c, w.strip.a, w.strip.b = nil, nil, nil
	w.ahead = ahead[F]{}
	poolOf[F]().Put(w)
}
