package attention

import (
	"sync"
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
)

// worker is the working memory of one call: half a megabyte for float32, so it comes from a pool.
type worker[F elem.Float] struct {
	// For a block of keys and one of queries. These arrays come first, so that they begin at cache lines.
	p, dp  [qBlock * pRow]F
	max    [qBlocks * qBlock]F       // of each query's scores so far; in the gradient, lse
	sum    [qBlocks * qBlock]float64 // of each query's exponentials so far
	inner  [qBlock]F                 // dot product of a query's output and its gradient
	own    [qBlock]float64           // sum of a row's exponentials
	factor [qBlock]F                 // of each row of the previous results
	slope  [kBlock]F                 // derivative of the softcap at a row's scores
	multiplier[F]
	seeing   [qBlock]int    // number of keys, from the first on, that have a gradient by each query
	k, kt, v gemm.Packed[F] // the keys, their transpose, the values; in the gradient, these transposed
	rows     gemm.Packed[F] // of queries, or of their outputs' gradient
}

// multiplier multiplies queries by packed keys and values, as far as the queries see these.
type multiplier[F elem.Float] struct {
	gemm.Work[F]
	seen     seen
	begun    int       // number of keys of the block that have a gradient so far
	strip    asm.Strip // of the present matmul
	prefetch prefetchList[F]
	halves   halved[F]
}

var pools [2]sync.Pool // of *worker[float32] and *worker[float64]

func poolOf[F elem.Float]() *sync.Pool {
	var z F
	return &pools[unsafe.Sizeof(z)/8]
}

// borrow takes a worker with undefined contents; giveBack returns it.
func borrow[F elem.Float]() *worker[F] {
	w, _ := poolOf[F]().Get().(*worker[F])
	if w == nil {
		w = new(worker[F])
	}
	return w
}

func (w *worker[F]) giveBack() {
	for _, p := range []*gemm.Packed[F]{&w.k, &w.kt, &w.v, &w.rows} {
		p.Forget() // the pool must not keep the caller's tensors alive
	}
	w.strip.C, w.strip.A, w.strip.B = nil, nil, nil
	w.prefetch = prefetchList[F]{}
	poolOf[F]().Put(w)
}
