package cpu

import "math"

func attentionGrad[F Float](dq, dk, dv, do, q, k, v, o, lse []F, s AttentionShape) {
	a := attendingsOf[F]().get()
	a.s, a.o, a.lse, a.q, a.k, a.v, a.grad = s, o, lse, q, k, v, true
	a.dq, a.dk, a.dv, a.do = dq, dk, dv, do
	a.call(s.Batch * s.Heads)
}

// headGrad is AttentionGrad for one head of keys and the group of query heads that read it.
func (w *scratch[F]) headGrad(a *attending[F], unit int) {
	s := &a.s
	b, h := unit/s.Heads, unit%s.Heads
	dk, dv := at(a.dk, b, s.KSeq, s.Heads, h, s.Dim), at(a.dv, b, s.KSeq, s.Heads, h, s.VDim)
	for j := range s.KSeq {
		clear(dk.d[j*dk.ld:][:s.Dim])
		clear(dv.d[j*dv.ld:][:s.VDim])
	}
	n := s.Heads * s.Group
	for g := range s.Group {
		hg := h*s.Group + g
		hd := place(s, b, hg, a.o, a.lse, a.q, a.k, a.v)
		hd.dq, hd.do, hd.dk, hd.dv = at(a.dq, b, s.Seq, n, hg, s.Dim), at(a.do, b, s.Seq, n, hg, s.VDim), dk, dv
		for i0 := 0; i0 < s.Seq; i0 += qBlock {
			w.attendGrad(&hd, i0, min(i0+qBlock, s.Seq))
		}
	}
}

// attendGrad computes dq of queries i0 to i1-1 and adds their part of dk and dv. For each block of keys,
// with p and z as Attention has them:
//
//	dp = do·v^T; ds = p*(z*dp - do·o)*scale*softcap'; dv += (p*z)^T·do; dq += ds·k; dk += ds^T·q
func (w *scratch[F]) attendGrad(hd *head[F], i0, i1 int) {
	rows, step := i1-i0, hd.Heads*hd.Group
	q, dq, o, do := hd.q.rows(i0), hd.dq.rows(i0), hd.o.rows(i0), hd.do.rows(i0)
	for i := range rows {
		w.max[i] = float64(hd.lse[(i0+i)*step])
		w.sum[i] = w.along(do.d[i*do.ld:][:hd.VDim], o.d[i*o.ld:][:hd.VDim])
		if !hd.More {
			clear(dq.d[i*dq.ld:][:hd.Dim])
		}
	}
	p, dp := mat[F]{d: w.p[:], ld: kBlock}, mat[F]{d: w.dp[:], ld: kBlock}
	pt, dst := p, dp
	pt.t, dst.t = true, true
	lo, hi := hd.span(i0, i1)
	scaled := w.scaled(hd, i0, rows)
	for j0, n := lo, 0; j0 < hi; j0 += n {
		n = hd.values().run(j0, min(kBlock, hi-j0))
		k, v := hd.k.rows(j0), hd.v.rows(j0)
		kt, vt := k, v
		kt.t, vt.t = true, true
		w.gemm(p, scaled, kt, rows, n, hd.Dim, false)
		w.gemm(dp, do, vt, rows, n, hd.VDim, false)
		for i := range rows {
			w.weighGrad(hd, i0, i, j0, n)
		}
		w.gemm(hd.dv.rows(j0), pt, do, n, hd.VDim, rows, true)
		w.gemm(dq, dp, k, rows, hd.Dim, n, true)
		w.gemm(hd.dk.rows(j0), dst, q, n, hd.Dim, rows, true)
	}
}

// weighGrad turns row i of w.p from scores into weights times z, and row i of w.dp from the gradient of
// those into that of the scores.
func (w *scratch[F]) weighGrad(hd *head[F], i0, i, j0, n int) {
	p, first := hd.seen(w.p[:], i0, i, j0, n)
	dp, _ := hd.seen(w.dp[:], i0, i, j0, n)
	lse, d, scale := w.max[i], F(w.sum[i]), F(hd.Scale)
	if math.IsInf(lse, -1) {
		clear(p)
		clear(dp)
		return
	}
	dp = dp[:len(p)]
	if hd.Softcap > 0 {
		capScores(p, w.slope[:], F(hd.Softcap))
	}
	hd.bias(p, i0+i, j0+first)
	if hd.Dropout == 0 {
		gradScores(p, dp, lse, d, scale)
	} else {
		hd.gradDropped(p, dp, lse, d, i0+i, j0+first)
	}
	if hd.Softcap > 0 {
		for j, f := range w.slope[:len(dp)] {
			dp[j] *= f
		}
	}
}

// gradDropped is gradScores with dropped weights, of query i and the keys from j on.
func (hd *head[F]) gradDropped(p, dp []F, lse float64, d F, i, j int) {
	keep, scale := F(1/(1-hd.Dropout)), F(hd.Scale)
	base := hd.weight(hd.b, hd.h, hd.g, i, j)
	for j, x := range p {
		e, z := F(exp[F](float64(x)-lse)), keep
		if !Keep(hd.Key, base+uint64(j), hd.Dropout) {
			z = 0
		}
		p[j] = F(e * z)
		dp[j] = F(F(e*(F(dp[j]*z)-d)) * scale)
	}
}
