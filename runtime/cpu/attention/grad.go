package attention

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/rng"
)

// Gradient computes AttentionGrad of package cpu.
func Gradient[F elem.Float](dq, dk, dv, do, q, k, v, o, lse []F, s Shape) {
	gradient(operands[F]{
		dq: gemm.Mat[F]{D: dq}, dk: gemm.Mat[F]{D: dk}, dv: gemm.Mat[F]{D: dv}, do: gemm.Mat[F]{D: do},
		q: gemm.Mat[F]{D: q}, k: gemm.Mat[F]{D: k}, v: gemm.Mat[F]{D: v}, o: gemm.Mat[F]{D: o}, lse: lse,
	}, s)
}

// gradient computes Gradient for either storage of the operands.
func gradient[F elem.Float](x operands[F], s Shape) {
	a := attendingsOf[F]().Get()
	a.s, a.operands, a.grad = s, x, true
	a.call(s.Batch * s.Heads)
}

// headGrad computes AttentionGrad for one head of keys and the group of query heads that read it.
func (w *worker[F]) headGrad(a *attending[F], unit int) {
	w.prefetch.askGrad(a, unit+1)
	s := &a.s
	b, h := unit/s.Heads, unit%s.Heads
	_, ldK, ldV := s.LD()
	dk, dv := at(a.dk, b, s.KSeq, ldK, h, s.Dim), at(a.dv, b, s.KSeq, ldV, h, s.VDim)
	k, v := at(a.k, b, s.KSeq, ldK, h, s.Dim), at(a.v, b, s.KSeq, ldV, h, s.VDim)
	lo, hi := s.span(b, 0, s.Seq)
	clearGrads(dk, dv, s, 0, lo) // no query sees these keys
	clearGrads(dk, dv, s, hi, s.KSeq)
	if lo == hi {
		w.keysGrad(a, b, h, dk, dv, lo, 0)
	}
	for j0, n := lo, 0; j0 < hi; j0 += n {
		n = s.Values().Consecutive(j0, min(kBlock, hi-j0))
		kt, vt := k.Rows(j0), v.Rows(j0)
		w.k.Pack(kt, n, s.Dim)
		kt.T, vt.T = true, true
		w.kt.Pack(kt, s.Dim, n)
		w.v.Pack(vt, s.VDim, n)
		w.keysGrad(a, b, h, dk, dv, j0, n)
	}
}

// headOf returns query head (h, g) of sample b with its gradients.
func (a *attending[F]) headOf(b, h, g int) head[F] {
	s := &a.s
	heads, hg := s.Heads*s.Group, h*s.Group+g
	hd := a.place(b, hg)
	ldQ, ldK, ldV := s.LD()
	hd.dq, hd.do = at(a.dq, b, s.Seq, ldQ, hg, s.Dim), at(a.do, b, s.Seq, heads*s.VDim, hg, s.VDim)
	hd.dk, hd.dv = at(a.dk, b, s.KSeq, ldK, h, s.Dim), at(a.dv, b, s.KSeq, ldV, h, s.VDim)
	return hd
}

// clearGrads zeroes the gradients of keys lo to hi-1.
func clearGrads[F elem.Float](dk, dv gemm.Mat[F], s *Shape, lo, hi int) {
	if lo < hi {
		clearRows(dk.Rows(lo), hi-lo, s.Dim)
		clearRows(dv.Rows(lo), hi-lo, s.VDim)
	}
}

// keysGrad is headGrad for n packed keys from j0 on. The first w.begun of them already have gradients.
func (w *worker[F]) keysGrad(a *attending[F], b, h int, dk, dv gemm.Mat[F], j0, n int) {
	s := &a.s
	w.begun = 0
	for g := range s.Group {
		hd := a.headOf(b, h, g)
		for i0 := 0; i0 < s.Seq; i0 += qBlock {
			w.attendGrad(&hd, i0, min(qBlock, s.Seq-i0), j0, n)
		}
		clearGrads(dk, dv, s, j0+w.begun, j0+n)
		w.begun = n
	}
}

// attendGrad adds the contribution of keys j0 to j0+n-1 to dq of rows queries from i0 on, and that of these
// queries to dk and dv of the keys. With p and z as in Attention:
//
//	dp = do·v^T; ds = p*(z*dp - do·o)*scale*softcap'; dv += (p*z)^T·do; dq += ds·k; dk += ds^T·q
func (w *worker[F]) attendGrad(hd *head[F], i0, rows, j0, n int) {
	step := hd.Heads * hd.Group
	q, dq, o, do := hd.q.Rows(i0), hd.dq.Rows(i0), hd.o.Rows(i0), hd.do.Rows(i0)
	lo, hi := hd.span(hd.b, i0, i0+rows)
	if !w.see(hd, i0, rows, j0, n) {
		if lo == hi && !hd.More {
			clearRows(dq, rows, hd.Dim)
		}
		return
	}
	p, dp := gemm.Mat[F]{D: w.p[:], LD: pRow}, gemm.Mat[F]{D: w.dp[:], LD: pRow}
	w.scoresOf(p, q, &w.kt, rows)
	w.scoresOf(dp, do, &w.v, rows)
	for i := range rows {
		w.max[i] = hd.lse[(i0+i)*step]
	}
	w.innerRows(w.widened(do, &w.halves.do, rows, hd.VDim), w.widened(o, &w.halves.o, rows, hd.VDim), rows, hd.VDim)
	if !w.gradRows(hd, rows) {
		for i := range rows {
			w.weighGrad(hd, i0, i, j0)
		}
	}
	keys := w.seen.n
	p, dp = w.narrowed(p, &w.halves.p, rows, &w.k), w.narrowed(dp, &w.halves.dp, rows, &w.k)
	w.rows.Pack(do, rows, hd.VDim)
	w.sumSeeing(hd.dv.Rows(j0), w.transposed(p, rows), &w.rows, keys)
	w.sumSeen(dq, dp, &w.k, rows, hd.More || lo < j0)
	w.rows.Pack(q, rows, hd.Dim)
	w.sumSeeing(hd.dk.Rows(j0), w.transposed(dp, rows), &w.rows, keys)
	w.begun = max(w.begun, keys)
}

// weighGrad replaces row i of w.p, dot products, by weights times z, and row i of w.dp, the gradient of the
// weights, by that of the scores.
func (w *worker[F]) weighGrad(hd *head[F], i0, i, j0 int) {
	p, first := w.visible(w.p[:], i)
	dp, _ := w.visible(w.dp[:], i)
	lse, d, scale := float64(w.max[i]), w.inner[i], F(hd.Scale)
	if math.IsInf(lse, -1) {
		clear(p)
		clear(dp)
		return
	}
	dp = dp[:len(p)]
	each := hd.scores(p, w.slope[:], i0+i, j0+first)
	if hd.Dropout == 0 {
		gradScores(p, dp, lse, each, d, scale)
	} else {
		hd.gradDropped(p, dp, lse, each, d, i0+i, j0+first)
	}
	if hd.Softcap > 0 {
		for j, f := range w.slope[:len(dp)] {
			dp[j] *= f
		}
	}
}

// gradDropped is gradScores with dropout, for query i and the keys from j on.
func (hd *head[F]) gradDropped(p, dp []F, lse float64, each, d F, i, j int) {
	keep, scale := F(1/(1-hd.Dropout)), F(hd.Scale)
	base := hd.Weight(hd.b, hd.h, hd.g, i, j)
	for j, x := range p {
		e, z := F(elem.Exp[F](float64(each*x)-lse)), keep
		if !rng.Keep(hd.Key, base+uint64(j), hd.Dropout) {
			z = 0
		}
		p[j] = F(e * z)
		dp[j] = F(F(e*(F(dp[j]*z)-d)) * scale)
	}
}
