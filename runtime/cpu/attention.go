package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/rng"
)

// AttentionShape says what Attention works on. Query head (h, g) reads key and value head h. Local query s
// is at position Pos0+s of the sequence, local key t at KPos0+t; from Half and KHalf on, where these are not 0, at
// Pos1+s-Half and KPos1+t-KHalf (see [Where]). If Causal, a query sees the keys up to its own position, and with a Window
// those less than Window positions back.
type AttentionShape struct {
	Batch, Seq, KSeq, Heads, Group, Dim, VDim int
	Scale                                     float64 // of q·k
	Softcap                                   float64 // scores s become cap*tanh(s/cap); 0: none
	Alibi                                     bool    // scores get slope*(key's position - query's), by the head's place in HeadsAll × GroupAll
	Causal                                    bool
	Pos0, KPos0                               int
	Half, Pos1, KHalf, KPos1                  int
	More                                      bool // o and lse, of AttentionGrad dq, are those of other keys, to which these keys' part is added
	Window                                    int  // 0: none; only where Causal

	// Dropout is the probability to drop a weight. Which ones are dropped follows from Key and the weight's
	// place in the whole [batch, HeadsAll, GroupAll, SeqAll, KSeqAll], where this part begins at Batch0,
	// Head0, Group0, Pos0, KPos0.
	Dropout                             float64
	Key                                 uint64
	Batch0, Head0, Group0               int
	HeadsAll, GroupAll, SeqAll, KSeqAll int
}

// Queries and keys are handled in blocks. Scores of a block are a matrix with kBlock elements a row.
const (
	qBlock = 64
	kBlock = 256
)

// queries and values say where the local queries and keys are.
func (s *AttentionShape) queries() Where { return Where{s.Pos0, s.Half, s.Pos1} }
func (s *AttentionShape) values() Where  { return Where{s.KPos0, s.KHalf, s.KPos1} }

// keys are the local keys that local query i sees: those from lo to hi-1.
func (s *AttentionShape) keys(i int) (lo, hi int) {
	hi = s.KSeq
	at := s.queries().Of(i)
	if s.Causal {
		hi = s.values().below(at+1, s.KSeq)
	}
	if s.Window > 0 {
		lo = s.values().below(at+1-s.Window, s.KSeq)
	}
	return min(lo, hi), hi
}

// weight is the index of the weight between local query i and local key j.
func (s *AttentionShape) weight(b, h, g, i, j int) uint64 {
	at := (s.Batch0+b)*s.HeadsAll + s.Head0 + h
	at = at*s.GroupAll + s.Group0 + g
	return uint64((at*s.SeqAll+s.queries().Of(i))*s.KSeqAll + s.values().Of(j))
}

// head is one query head of one sample: matrices with a row a position.
type head[F Float] struct {
	*AttentionShape
	b, h, g    int
	slope      float64 // Alibi's, else 0
	q, k, v, o mat[F]
	lse        []F // of position s at s*Heads*Group
	dq, dk, dv mat[F]
	do         mat[F]
}

// at is the head's rows of x [batch, seq, n heads, dim], of which it is number h.
func at[F Float](x []F, b, seq, n, h, dim int) mat[F] {
	return mat[F]{d: x[min(len(x), (b*seq*n+h)*dim):], ld: n * dim}
}

// rows are the rows of x from i on.
func (x mat[F]) rows(i int) mat[F] {
	if x.h != nil {
		x.h = x.h[i*x.ld:]
	} else {
		x.d = x.d[i*x.ld:]
	}
	return x
}

// span is the range of keys that any of queries i0 to i1-1 sees, both ends growing with the query.
func (s *AttentionShape) span(i0, i1 int) (lo, hi int) {
	lo, _ = s.keys(i0)
	_, hi = s.keys(i1 - 1)
	return lo, hi
}

// attending is a call of Attention or AttentionGrad as a job. Its units are what can be done apart: a block of a head's
// queries; for the gradient a head of keys, whose dk and dv add up over its queries.
type attending[F Float] struct {
	s               AttentionShape
	o, lse, q, k, v []F
	dq, dk, dv, do  []F
	grad            bool
	units, per      int // per: units of a part
}

var attendings32, attendings64 = pool[attending[float32]]{}, pool[attending[float64]]{}

// attendingsOf is the pool of F's calls.
func attendingsOf[F Float]() *pool[attending[F]] {
	if p, ok := any(&attendings32).(*pool[attending[F]]); ok {
		return p
	}
	return any(&attendings64).(*pool[attending[F]])
}

// call does all units and gives a back to its pool.
func (a *attending[F]) call(units int) {
	a.units, a.per = units, (units+maxParts-1)/maxParts
	if units > 0 {
		run(a, (units+a.per-1)/a.per)
	}
	*a = attending[F]{}
	attendingsOf[F]().put(a)
}

func (a *attending[F]) part(i int) {
	w := borrow[F]()
	for u := i * a.per; u < min((i+1)*a.per, a.units); u++ {
		if a.grad {
			w.headGrad(a, u)
		} else {
			w.headBlock(a, u)
		}
	}
	w.giveBack()
}

func attention[F Float](o, lse, q, k, v []F, s AttentionShape) {
	a := attendingsOf[F]().get()
	a.s, a.o, a.lse, a.q, a.k, a.v, a.grad = s, o, lse, q, k, v, false
	a.call(s.Batch * s.Heads * s.Group * s.blocks())
}

// blocks is the number of blocks of queries.
func (s *AttentionShape) blocks() int { return (s.Seq + qBlock - 1) / qBlock }

// headBlock is Attention for one block of a head's queries. Later blocks, which may see more keys, come first.
func (w *scratch[F]) headBlock(a *attending[F], unit int) {
	s, n := &a.s, a.s.blocks()
	unit, i0 := unit/n, (n-1-unit%n)*qBlock
	heads := s.Heads * s.Group
	hd := place(s, unit/heads, unit%heads, a.o, a.lse, a.q, a.k, a.v)
	w.attend(&hd, i0, min(i0+qBlock, s.Seq))
}

// place finds query head hg = h*Group + g of sample b.
func place[F Float](s *AttentionShape, b, hg int, o, lse, q, k, v []F) head[F] {
	n, h := s.Heads*s.Group, hg/s.Group
	return head[F]{
		AttentionShape: s, b: b, h: h, g: hg % s.Group, slope: s.slope(h, hg%s.Group),
		q: at(q, b, s.Seq, n, hg, s.Dim), o: at(o, b, s.Seq, n, hg, s.VDim),
		k: at(k, b, s.KSeq, s.Heads, h, s.Dim), v: at(v, b, s.KSeq, s.Heads, h, s.VDim),
		lse: lse[min(len(lse), b*s.Seq*n+hg):],
	}
}

// attend computes o and lse of queries i0 to i1-1: for each block of keys, with max and sum those of the
// blocks so far, o = o*exp(old max - max) + exp(scores - max)·v; at last o /= sum.
func (w *scratch[F]) attend(hd *head[F], i0, i1 int) {
	rows, step := i1-i0, hd.Heads*hd.Group
	o := hd.o.rows(i0)
	for i := range rows {
		w.max[i], w.sum[i] = math.Inf(-1), 0
		if !hd.More {
			clear(o.d[i*o.ld:][:hd.VDim])
		} else if l := float64(hd.lse[(i0+i)*step]); !math.IsInf(l, -1) {
			w.max[i], w.sum[i] = l, 1 // of exp(score - lse)
		}
	}
	p, q := mat[F]{d: w.p[:], ld: kBlock}, w.scaled(hd, i0, rows)
	lo, hi := hd.span(i0, i1)
	for j0, n := lo, 0; j0 < hi; j0 += n {
		n = hd.values().run(j0, min(kBlock, hi-j0))
		kt := hd.k.rows(j0)
		kt.t = true
		w.gemm(p, q, kt, rows, n, hd.Dim, false)
		for i := range rows {
			if f := w.weigh(hd, i0, i, j0, n); f != 1 {
				scaleTo(o.d[i*o.ld:][:hd.VDim], o.d[i*o.ld:][:hd.VDim], F(f))
			}
		}
		w.gemm(o, p, hd.v.rows(j0), rows, hd.VDim, n, true)
	}
	for i := range rows {
		l := math.Inf(-1)
		if sum := w.sum[i]; sum > 0 || sum != sum {
			l = w.max[i] + rng.Log(sum)
			scaleTo(o.d[i*o.ld:][:hd.VDim], o.d[i*o.ld:][:hd.VDim], F(1/sum))
		}
		hd.lse[(i0+i)*step] = F(l)
	}
}

// scaled are rows of the head's queries from i0 on, times the scale.
func (w *scratch[F]) scaled(hd *head[F], i0, rows int) mat[F] {
	w.q = room(w.q, qBlock*hd.Dim)
	q, scale := hd.q.rows(i0), F(hd.Scale)
	for i := range rows {
		scaleTo(w.q[i*hd.Dim:][:hd.Dim], q.d[i*q.ld:][:hd.Dim], scale)
	}
	return mat[F]{d: w.q, ld: hd.Dim}
}

// scaleTo is y = x*f. y may be x.
func scaleTo[F Float](y, x []F, f F) {
	if k, row := loops32(x); k != nil {
		k.Scale(any(y).([]float32), row, float32(f))
		return
	}
	for i, v := range x {
		y[i] = v * f
	}
}

// seen is row i of the scores x of n keys from j0 on: the part that query i0+i sees, and where it begins.
// It zeroes the rest.
func (hd *head[F]) seen(x []F, i0, i, j0, n int) ([]F, int) {
	row := x[i*kBlock:][:n]
	lo, hi := hd.keys(i0 + i)
	lo, hi = max(0, min(lo-j0, n)), max(0, min(hi-j0, n))
	clear(row[:lo])
	clear(row[hi:])
	return row[lo:hi], lo
}

// weigh turns row i of w.p from scores of n keys into exp(score - max), times z; it updates the
// row's max and sum and returns the factor exp(old max - max) of what was computed with the old max.
func (w *scratch[F]) weigh(hd *head[F], i0, i, j0, n int) float64 {
	row, first := hd.seen(w.p[:], i0, i, j0, n)
	if len(row) == 0 {
		return 1
	}
	if hd.Softcap > 0 {
		capScores(row, nil, F(hd.Softcap))
	}
	hd.bias(row, i0+i, j0+first)
	top := max(w.max[i], float64(highest(row)))
	if math.IsInf(top, -1) {
		clear(row)
		return 1
	}
	f := exp[F](w.max[i] - top)
	w.max[i], w.sum[i] = top, float64(w.sum[i]*f)+weights(row, top)
	if hd.Dropout > 0 {
		hd.drop(row, i0+i, j0+first)
	}
	return f
}

// drop is row *= z for the weights of query i and the keys from j on.
func (hd *head[F]) drop(row []F, i, j int) {
	keep := F(1 / (1 - hd.Dropout))
	base := hd.weight(hd.b, hd.h, hd.g, i, j)
	for j := range row {
		if Keep(hd.Key, base+uint64(j), hd.Dropout) {
			row[j] *= keep
		} else {
			row[j] = 0
		}
	}
}
