package gemm

import (
	"sync"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// The blocks of a matmul in plain Go. A panel of op(b) (kc x nr) stays in the first-level cache while the
// rows of op(a) pass, two at a time. The packed block of op(b) stays in the second-level cache.
const (
	nr = 3   // columns of a tile; 2 x 3 sums, their terms and factors just fit 15 registers
	nc = 192 // columns of a block of op(b)
	kc = 256 // terms that are summed before they are added to c
	mc = 16  // rows of a block of op(a)
)

// Work is the working memory of matmuls in plain Go, a quarter of a megabyte for float32.
type Work[F elem.Float] struct {
	b [nc / nr * kc][nr]F // a block of op(b): panels of nr columns, each kc long
	a [mc * kc]F          // a block of op(a) if it is a transpose: rows of kc
}

var works [2]sync.Pool // of *work[float32] and *work[float64]

// borrowWork takes working memory with undefined contents; giveBack returns it.
func borrowWork[F elem.Float]() *Work[F] {
	w, _ := works[elem.Size[F]()/8].Get().(*Work[F])
	if w == nil {
		w = new(Work[F])
	}
	return w
}

func (w *Work[F]) giveBack() { works[elem.Size[F]()/8].Put(w) }

// plainMatMul computes MatMul in plain Go.
func plainMatMul[F elem.Float](c, a, b []F, m, n, k int, ta, tb, acc bool) {
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	w := borrowWork[F]()
	w.plain(Part[F]{Mat[F]{D: c, LD: n}, Mat[F]{D: a, LD: lda, T: ta}, Mat[F]{D: b, LD: ldb, T: tb}, m, n, k, acc})
	w.giveBack()
}

// Part is a matmul of matrices that may be parts of larger ones: c = a·b (+ c if acc).
type Part[F elem.Float] struct {
	C, A, B Mat[F]
	M, N, K int
	Acc     bool
}

// Multiply multiplies on the caller's thread, with the engine in use if there is one.
func (w *Work[F]) Multiply(x Part[F]) { w.multiplyOn(x, false) }

// multiplyOn is multiply, optionally on several threads.
func (w *Work[F]) multiplyOn(x Part[F], threads bool) {
	if e := engineOf[F](); e != nil {
		g := borrowGemm(e.forTerms(x.K))
		g.c, g.a, g.b, g.m, g.n, g.k, g.acc = x.C, x.A, x.B, x.M, x.N, x.K, x.Acc
		g.multiply(threads)
		g.giveBack()
		return
	}
	w.plain(x)
}

// plain is multiply in plain Go. An element is the sum of sums of kc terms, whatever m and n are: its bits do
// not depend on the other elements.
func (w *Work[F]) plain(x Part[F]) {
	c, a, b, m, n, k, acc := x.C, x.A, x.B, x.M, x.N, x.K, x.Acc
	if k == 0 && !acc {
		for i := range m {
			clear(c.D[i*c.LD:][:n])
		}
	}
	for j0 := 0; j0 < n; j0 += nc {
		nb := min(nc, n-j0)
		for p0 := 0; p0 < k; p0 += kc {
			kb := min(kc, k-p0)
			w.packB(b, p0, j0, kb, nb)
			for i0 := 0; i0 < m; i0 += mc {
				mb := min(mc, m-i0)
				cb := Mat[F]{D: c.D[i0*c.LD+j0:], LD: c.LD}
				if a.T {
					w.packA(a, p0, i0, kb, mb)
					w.block(cb, Mat[F]{D: w.a[:], LD: kc}, mb, nb, kb, acc || p0 > 0)
				} else {
					w.block(cb, Mat[F]{D: a.D[i0*a.LD+p0:], LD: a.LD}, mb, nb, kb, acc || p0 > 0)
				}
			}
		}
	}
}

// block computes c = a·(packed b) (+ c if acc) for an untransposed a.
func (w *Work[F]) block(c, a Mat[F], m, n, k int, acc bool) {
	var t [2][nr]F
	for j := 0; j < n; j += nr {
		panel, cols := w.b[j/nr*kc:][:k], min(nr, n-j)
		for i := 0; i < m; i += 2 {
			rows := min(2, m-i)
			a0, a1 := a.D[i*a.LD:], a.D[(i+rows-1)*a.LD:] // a single last row is its own partner
			tile(&t, a0[:k], a1[:k], panel)
			for r := range rows {
				store(c.D[(i+r)*c.LD+j:][:cols], &t[r], acc)
			}
		}
	}
}

// tile computes
//
//	for r, j := range [2, nr] { t[r][j] = sum_p a_r[p] * b[p][j] }
//
// in the order of p.
func tile[F elem.Float](t *[2][nr]F, a0, a1 []F, b [][nr]F) {
	a1, b = a1[:len(a0)], b[:len(a0)]
	var c00, c01, c02, c10, c11, c12 F
	for p, x := range a0 {
		r := &b[p]
		y := a1[p]
		b0 := r[0]
		c00 += F(x * b0)
		c10 += F(y * b0)
		b1 := r[1]
		c01 += F(x * b1)
		c11 += F(y * b1)
		b2 := r[2]
		c02 += F(x * b2)
		c12 += F(y * b2)
	}
	t[0][0], t[0][1], t[0][2] = c00, c01, c02
	t[1][0], t[1][1], t[1][2] = c10, c11, c12
}

// store writes a row of a tile, or adds it.
func store[F elem.Float](c []F, t *[nr]F, acc bool) {
	switch {
	case acc:
		for j := range c {
			c[j] += t[j]
		}
	case len(c) == nr:
		c[0], c[1], c[2] = t[0], t[1], t[2]
	default:
		copy(c, t[:])
	}
}

// packB copies kb x nb elements of op(b), from row p0 and column j0 on, into panels. Missing columns of the
// last panel are 0.
func (w *Work[F]) packB(b Mat[F], p0, j0, kb, nb int) {
	for j := 0; j < nb; j += nr {
		panel, cols := w.b[j/nr*kc:][:kb], min(nr, nb-j)
		switch {
		case cols < nr:
			clear(panel)
			for p := range panel {
				for q := range cols {
					panel[p][q] = b.At(p0+p, j0+j+q)
				}
			}
		case b.T:
			b0 := b.D[(j0+j)*b.LD+p0:][:kb]
			b1 := b.D[(j0+j+1)*b.LD+p0:][:kb]
			b2 := b.D[(j0+j+2)*b.LD+p0:][:kb]
			for p := range panel {
				panel[p] = [nr]F{b0[p], b1[p], b2[p]}
			}
		default:
			at := p0*b.LD + j0 + j
			for p := range panel {
				row := b.D[at:][:nr]
				panel[p] = [nr]F{row[0], row[1], row[2]}
				at += b.LD
			}
		}
	}
}

// packA copies mb x kb elements of the transpose of a.d, from row i0 and column p0 on, into rows: four at a
// time, so that a cache line of a is read only a few times.
func (w *Work[F]) packA(a Mat[F], p0, i0, kb, mb int) {
	for i := 0; i < mb; i += 4 {
		if i+4 > mb {
			for ; i < mb; i++ {
				for p := range kb {
					w.a[i*kc+p] = a.D[(p0+p)*a.LD+i0+i]
				}
			}
			return
		}
		r0, r1 := w.a[i*kc:][:kb], w.a[(i+1)*kc:][:kb]
		r2, r3 := w.a[(i+2)*kc:][:kb], w.a[(i+3)*kc:][:kb]
		for p, at := 0, p0*a.LD+i0+i; p < kb; p, at = p+1, at+a.LD {
			s := a.D[at:][:4]
			r0[p], r1[p], r2[p], r3[p] = s[0], s[1], s[2], s[3]
		}
	}
}
