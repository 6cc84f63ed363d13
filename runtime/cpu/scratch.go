package cpu

import (
	"sync"
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

// scratch is the working memory of one call: half a megabyte for float32, so it comes from a pool.
type scratch[F Float] struct {
	b [nc / nr * kc][nr]F // a block of op(b): panels of nr columns, each kc long
	a [mc * kc]F          // a block of op(a) if it is a transpose: rows of kc

	// Attention's, for a block of keys and one of queries.
	p, dp    [qBlock * pRow]F
	max      [qBlocks * qBlock]F       // of each query's scores so far; in the gradient, lse
	sum      [qBlocks * qBlock]float64 // of each query's exponentials so far
	inner    [qBlock]F                 // dot product of a query's output and its gradient
	own      [qBlock]float64           // sum of a row's exponentials
	factor   [qBlock]F                 // of each row of the previous results
	slope    [kBlock]F                 // derivative of the softcap at a row's scores
	seen     seen
	seeing   [qBlock]int // number of keys, from the first on, that have a gradient by each query
	begun    int         // number of keys of the block that have a gradient so far
	k, kt, v packed[F]   // the keys, their transpose, the values; in the gradient, these transposed
	rows     packed[F]   // of queries, or of their outputs' gradient
	strip    asm.Strip   // of the present matmul
	prefetch prefetchList[F]
	halves   halved[F]
}

var pools [2]sync.Pool // of *scratch[float32] and *scratch[float64]

func poolOf[F Float]() *sync.Pool {
	var z F
	return &pools[unsafe.Sizeof(z)/8]
}

// borrow takes a scratch with undefined contents; giveBack returns it.
func borrow[F Float]() *scratch[F] {
	w, _ := poolOf[F]().Get().(*scratch[F])
	if w == nil {
		w = new(scratch[F])
	}
	return w
}

func (w *scratch[F]) giveBack() {
	for _, p := range []*packed[F]{&w.k, &w.kt, &w.v, &w.rows} {
		p.at = mat[F]{} // the pool must not keep the caller's tensors alive
	}
	w.strip.C, w.strip.A, w.strip.B = nil, nil, nil
	w.prefetch = prefetchList[F]{}
	poolOf[F]().Put(w)
}
