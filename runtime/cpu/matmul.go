package cpu

// The blocks of a matmul in plain Go. A panel of op(b) (kc x nr) stays in the first-level cache while the
// rows of op(a) pass, two at a time. The packed block of op(b) stays in the second-level cache.
const (
	nr = 3   // columns of a tile; 2 x 3 sums, their products and factors just fit 15 registers
	nc = 192 // columns of a block of op(b)
	kc = 256 // terms that are summed before they are added to c
	mc = 16  // rows of a block of op(a)
)

// mat is a matrix with ld elements from row to row, or its transpose. 16-bit elements are in h instead of
// d; only the matmuls of matMulPairs read these.
type mat[F Float] struct {
	d  []F
	ld int
	t  bool
	h  []uint16
}

func matMul[F Float](c, a, b []F, m, n, k int, ta, tb, acc bool) {
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	w := borrow[F]()
	w.plain(mat[F]{d: c, ld: n}, mat[F]{d: a, ld: lda, t: ta}, mat[F]{d: b, ld: ldb, t: tb}, m, n, k, acc)
	w.giveBack()
}

func matMulOn[F Float](c, from, a, b []F, m, n, k int, ta, tb bool) {
	if m*n > 0 {
		mat[F]{d: c, ld: n}.copyFrom(rowsOf(from, m, n), m, n)
		matMul(c, a, b, m, n, k, ta, tb, true)
	}
}

// gemm is matMul on matrices that may be parts of larger ones, with the engine in use if there is one. It
// runs on the caller's thread.
func (w *scratch[F]) gemm(c, a, b mat[F], m, n, k int, acc bool) {
	w.blockMatmul(c, a, b, m, n, k, acc, false)
}

// blockMatmul is gemm, optionally on several threads.
func (w *scratch[F]) blockMatmul(c, a, b mat[F], m, n, k int, acc, threads bool) {
	if e := engineOf[F](); e != nil {
		g := borrowGemm(e.forTerms(k))
		g.c, g.a, g.b, g.m, g.n, g.k, g.acc = c, a, b, m, n, k, acc
		g.multiply(threads)
		g.giveBack()
		return
	}
	w.plain(c, a, b, m, n, k, acc)
}

// plain is gemm in plain Go. An element is the sum of sums of kc terms, whatever m and n are: its bits do
// not depend on the other elements.
func (w *scratch[F]) plain(c, a, b mat[F], m, n, k int, acc bool) {
	if k == 0 && !acc {
		for i := range m {
			clear(c.d[i*c.ld:][:n])
		}
	}
	for j0 := 0; j0 < n; j0 += nc {
		nb := min(nc, n-j0)
		for p0 := 0; p0 < k; p0 += kc {
			kb := min(kc, k-p0)
			w.packB(b, p0, j0, kb, nb)
			for i0 := 0; i0 < m; i0 += mc {
				mb := min(mc, m-i0)
				cb := mat[F]{d: c.d[i0*c.ld+j0:], ld: c.ld}
				if a.t {
					w.packA(a, p0, i0, kb, mb)
					w.block(cb, mat[F]{d: w.a[:], ld: kc}, mb, nb, kb, acc || p0 > 0)
				} else {
					w.block(cb, mat[F]{d: a.d[i0*a.ld+p0:], ld: a.ld}, mb, nb, kb, acc || p0 > 0)
				}
			}
		}
	}
}

// block computes c = a·(packed b) (+ c if acc) for an untransposed a.
func (w *scratch[F]) block(c, a mat[F], m, n, k int, acc bool) {
	var t [2][nr]F
	for j := 0; j < n; j += nr {
		panel, cols := w.b[j/nr*kc:][:k], min(nr, n-j)
		for i := 0; i < m; i += 2 {
			rows := min(2, m-i)
			a0, a1 := a.d[i*a.ld:], a.d[(i+rows-1)*a.ld:] // a single last row is its own partner
			tile(&t, a0[:k], a1[:k], panel)
			for r := range rows {
				store(c.d[(i+r)*c.ld+j:][:cols], &t[r], acc)
			}
		}
	}
}

// tile computes
//
//	for r, j := range [2, nr] { t[r][j] = sum_p a_r[p] * b[p][j] }
//
// in the order of p.
func tile[F Float](t *[2][nr]F, a0, a1 []F, b [][nr]F) {
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
func store[F Float](c []F, t *[nr]F, acc bool) {
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
func (w *scratch[F]) packB(b mat[F], p0, j0, kb, nb int) {
	for j := 0; j < nb; j += nr {
		panel, cols := w.b[j/nr*kc:][:kb], min(nr, nb-j)
		switch {
		case cols < nr:
			clear(panel)
			for p := range panel {
				for q := range cols {
					panel[p][q] = b.at(p0+p, j0+j+q)
				}
			}
		case b.t:
			b0 := b.d[(j0+j)*b.ld+p0:][:kb]
			b1 := b.d[(j0+j+1)*b.ld+p0:][:kb]
			b2 := b.d[(j0+j+2)*b.ld+p0:][:kb]
			for p := range panel {
				panel[p] = [nr]F{b0[p], b1[p], b2[p]}
			}
		default:
			at := p0*b.ld + j0 + j
			for p := range panel {
				row := b.d[at:][:nr]
				panel[p] = [nr]F{row[0], row[1], row[2]}
				at += b.ld
			}
		}
	}
}

// packA copies mb x kb elements of the transpose of a.d, from row i0 and column p0 on, into rows: four at a
// time, so that a cache line of a is read only a few times.
func (w *scratch[F]) packA(a mat[F], p0, i0, kb, mb int) {
	for i := 0; i < mb; i += 4 {
		if i+4 > mb {
			for ; i < mb; i++ {
				for p := range kb {
					w.a[i*kc+p] = a.d[(p0+p)*a.ld+i0+i]
				}
			}
			return
		}
		r0, r1 := w.a[i*kc:][:kb], w.a[(i+1)*kc:][:kb]
		r2, r3 := w.a[(i+2)*kc:][:kb], w.a[(i+3)*kc:][:kb]
		for p, at := 0, p0*a.ld+i0+i; p < kb; p, at = p+1, at+a.ld {
			s := a.d[at:][:4]
			r0[p], r1[p], r2[p], r3[p] = s[0], s[1], s[2], s[3]
		}
	}
}

// at returns element (i, j) of the matrix.
func (x mat[F]) at(i, j int) F {
	if x.t {
		i, j = j, i
	}
	return x.d[i*x.ld+j]
}
