package attention

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/rng"
)

// Shape describes a call of Attention. Query head (h, g) reads key and value head h. Local query s
// has position Pos0+s in the sequence, and local key t has position KPos0+t. If Half or KHalf is not 0,
// indices from there on have positions Pos1+s-Half and KPos1+t-KHalf (see [elem.Where]).
type Shape struct {
	Batch, Seq, KSeq, Heads, Group, Dim, VDim int
	Scale                                     float64 // factor of q·k
	Softcap                                   float64 // scores s become cap*tanh(s/cap); 0: none
	// adds slope*(key's position - query's) to scores, with the slope of the head's index in HeadsAll ×
	// GroupAll
	Alibi       bool
	Pos0, KPos0 int
	Zigzag
	Mask
	// o and lse (for AttentionGrad: dq) hold the result for other keys, to which these keys are added
	More bool

	// Dropout is the probability that a weight is dropped. It depends on Key and on the weight's index in the
	// whole [batch, HeadsAll, GroupAll, SeqAll, KSeqAll], in which this part begins at Batch0, Head0, Group0,
	// Pos0, KPos0.
	Dropout                             float64
	Key                                 uint64
	Batch0, Head0, Group0               int
	HeadsAll, GroupAll, SeqAll, KSeqAll int

	// Pitch is the number of elements from one position of q, k and v, and of their gradients, to the next if they lie
	// side by side; 0: each is contiguous. It is a multiple of Dim, which is then VDim.
	Pitch int
}

// Zigzag describes queries and keys of which those from index Half and KHalf on are at Pos1 and KPos1; 0: all are
// consecutive.
type Zigzag struct{ Half, Pos1, KHalf, KPos1 int }

// Mask says which keys a query sees. The zero value is all keys.
type Mask struct {
	Causal bool // those up to its own position
	Window int  // those less than Window positions back; 0: all. It requires Causal

	// Starts and Ends are the borders of the document of each position, [Batch, SeqAll]: a query sees the keys from the
	// start of its document to before its end. Neither decreases along a row. nil: documents have no borders.
	Starts, Ends []int32
}

// LD returns the number of elements from one position of q, of k and of v to the next.
func (s *Shape) LD() (q, k, v int) {
	if s.Pitch > 0 {
		return s.Pitch, s.Pitch, s.Pitch
	}
	return s.Heads * s.Group * s.Dim, s.Heads * s.Dim, s.Heads * s.VDim
}

// Queries and keys are processed in blocks. A block of keys is packed once for a few blocks of queries. The
// scores of a block are a matrix; a row has space for kBlock keys plus a cache line, so that rows fall into
// different sets of a cache.
const (
	qBlock   = 64
	kBlock   = 256
	pRow     = kBlock + 16
	qBlocks  = 4  // blocks of queries, at most, that share packed keys
	fewUnits = 32 // minimum number of units, if there are enough blocks
)

// Queries and values return the positions of the local queries and keys.
func (s *Shape) Queries() elem.Where { return elem.Where{At: s.Pos0, Half: s.Half, Then: s.Pos1} }
func (s *Shape) Values() elem.Where  { return elem.Where{At: s.KPos0, Half: s.KHalf, Then: s.KPos1} }

// Keys returns the range of local keys that local query i of local sample b sees: lo to hi-1. Both increase with the
// query.
func (s *Shape) Keys(b, i int) (lo, hi int) {
	hi = s.KSeq
	at := s.Queries().Of(i)
	if s.Causal {
		hi = s.Values().Below(at+1, s.KSeq)
	}
	if s.Window > 0 {
		lo = s.Values().Below(at+1-s.Window, s.KSeq)
	}
	if s.Starts != nil {
		lo = max(lo, s.Values().Below(int(s.Starts[b*s.SeqAll+at]), s.KSeq))
	}
	if s.Ends != nil {
		hi = min(hi, s.Values().Below(int(s.Ends[b*s.SeqAll+at]), s.KSeq))
	}
	return min(lo, hi), hi
}

// Weight returns the global index of the weight between local query i and local key j.
func (s *Shape) Weight(b, h, g, i, j int) uint64 {
	at := (s.Batch0+b)*s.HeadsAll + s.Head0 + h
	at = at*s.GroupAll + s.Group0 + g
	return uint64((at*s.SeqAll+s.Queries().Of(i))*s.KSeqAll + s.Values().Of(j))
}

// head is one query head of one sample: matrices with a row for each position.
type head[F elem.Float] struct {
	*Shape
	b, h, g    int
	slope      float64 // ALiBi's, else 0
	q, k, v, o gemm.Mat[F]
	lse        []F // element of position s at s*Heads*Group
	dq, dk, dv gemm.Mat[F]
	do         gemm.Mat[F]
}

// at returns the rows of head h of x [batch, seq, heads, dim], whose positions are ld elements apart.
func at[F elem.Float](x gemm.Mat[F], b, seq, ld, h, dim int) gemm.Mat[F] {
	first := b*seq*ld + h*dim
	if x.H != nil {
		return gemm.Mat[F]{H: x.H[min(len(x.H), first):], LD: ld}
	}
	return gemm.Mat[F]{D: x.D[min(len(x.D), first):], LD: ld}
}

// span returns the range of keys that contains those that queries i0 to i1-1 of sample b see.
func (s *Shape) span(b, i0, i1 int) (lo, hi int) {
	lo, _ = s.Keys(b, i0)
	_, hi = s.Keys(b, i1-1)
	return lo, hi
}

// attending is a call of Attention or AttentionGrad as a job. Its units are independent: a few blocks of a
// head's queries or, for the gradient, a head of keys, whose dk and dv are sums over its queries.
type attending[F elem.Float] struct {
	s Shape
	operands[F]
	grad       bool
	rows       int // queries per unit
	units, per int // per: units per part
}

// operands are those of Forward or Gradient: whole tensors, whose LD is not used.
type operands[F elem.Float] struct {
	o, q, k, v     gemm.Mat[F]
	dq, dk, dv, do gemm.Mat[F]
	lse            []F
}

var attendings32, attendings64 = team.Pool[attending[float32]]{}, team.Pool[attending[float64]]{}

// attendingsOf returns the pool of F's calls.
func attendingsOf[F elem.Float]() *team.Pool[attending[F]] {
	if p, ok := any(&attendings32).(*team.Pool[attending[F]]); ok {
		return p
	}
	return any(&attendings64).(*team.Pool[attending[F]])
}

// call runs all units and returns a to its pool.
func (a *attending[F]) call(units int) {
	a.units, a.per = units, (units+team.MaxParts-1)/team.MaxParts
	if units > 0 {
		team.Run(a, (units+a.per-1)/a.per)
	}
	*a = attending[F]{}
	attendingsOf[F]().Put(a)
}

func (a *attending[F]) Part(i int) {
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

// Forward computes Attention of package cpu.
func Forward[F elem.Float](o, lse, q, k, v []F, s Shape) {
	x := operands[F]{q: gemm.Mat[F]{D: q}, k: gemm.Mat[F]{D: k}, v: gemm.Mat[F]{D: v}, o: gemm.Mat[F]{D: o}, lse: lse}
	forward(x, s)
}

// forward computes Forward for either storage of the operands.
func forward[F elem.Float](x operands[F], s Shape) {
	a := attendingsOf[F]().Get()
	a.s, a.operands, a.grad = s, x, false
	heads := s.Batch * s.Heads * s.Group
	a.rows = qBlock * max(1, min(qBlocks, heads*s.blocks(qBlock)/fewUnits))
	a.call(heads * s.blocks(a.rows))
}

// blocks returns the number of blocks of the given number of queries.
func (s *Shape) blocks(rows int) int { return (s.Seq + rows - 1) / rows }

// headBlock computes Attention for a few blocks of a head's queries. Later blocks, which may see more keys,
// come first.
func (w *worker[F]) headBlock(a *attending[F], unit int) {
	hd, i0, i1 := a.block(unit)
	w.prefetch.askUnit(a, unit+1)
	w.attend(&hd, i0, i1)
}

// block returns the head and the queries of a unit of Attention.
func (a *attending[F]) block(unit int) (hd head[F], i0, i1 int) {
	s, n, heads := &a.s, a.s.blocks(a.rows), a.s.Heads*a.s.Group
	i0 = (n - 1 - unit%n) * a.rows
	return a.place(unit/n/heads, unit/n%heads), i0, min(i0+a.rows, s.Seq)
}

// place returns query head hg = h*Group + g of sample b.
func (a *attending[F]) place(b, hg int) head[F] {
	s := &a.s
	n, h := s.Heads*s.Group, hg/s.Group
	ldQ, ldK, ldV := s.LD()
	return head[F]{
		Shape: s, b: b, h: h, g: hg % s.Group, slope: s.Slope(h, hg%s.Group),
		q: at(a.q, b, s.Seq, ldQ, hg, s.Dim), o: at(a.o, b, s.Seq, n*s.VDim, hg, s.VDim),
		k: at(a.k, b, s.KSeq, ldK, h, s.Dim), v: at(a.v, b, s.KSeq, ldV, h, s.VDim),
		lse: a.lse[min(len(a.lse), b*s.Seq*n+hg):],
	}
}

// attend computes o and lse of queries i0 to i1-1. For each block of keys, with max and sum over the blocks
// so far: o = o*exp(old max - max) + exp(scores - max)·v. At the end: o /= sum.
func (w *worker[F]) attend(hd *head[F], i0, i1 int) {
	w.begin(hd, i0, i1)
	lo, hi := hd.span(hd.b, i0, i1)
	if lo == hi && !hd.More {
		clearRows(hd.o.Rows(i0), i1-i0, hd.VDim)
	}
	for j0, n := lo, 0; j0 < hi; j0 += n {
		n = hd.Values().Consecutive(j0, min(kBlock, hi-j0))
		kt := hd.k.Rows(j0)
		kt.T = true
		w.kt.Pack(kt, hd.Dim, n)
		w.v.Pack(hd.v.Rows(j0), n, hd.VDim)
		for b := i0; b < i1; b += qBlock {
			w.attendBlock(hd, b, min(qBlock, i1-b), b-i0, j0, n)
		}
	}
	w.finish(hd, i0, i1)
}

// begin initializes max and sum of queries i0 to i1-1.
func (w *worker[F]) begin(hd *head[F], i0, i1 int) {
	step := hd.Heads * hd.Group
	for i := range i1 - i0 {
		w.max[i], w.sum[i] = F(math.Inf(-1)), 0
		if hd.More {
			if l := hd.lse[(i0+i)*step]; !math.IsInf(float64(l), -1) {
				w.max[i], w.sum[i] = l, 1 // of exp(score - lse)
			}
		}
	}
}

// attendBlock is attend for rows queries from i0 on, which have index at in max and sum, and keys j0 to
// j0+n-1.
func (w *worker[F]) attendBlock(hd *head[F], i0, rows, at, j0, n int) {
	o, p := hd.o.Rows(i0), gemm.Mat[F]{D: w.p[:], LD: pRow}
	lo, hi := hd.span(hd.b, i0, i0+rows)
	if !w.see(hd, i0, rows, j0, n) {
		if lo == hi && !hd.More {
			clearRows(o, rows, hd.VDim)
		}
		return
	}
	w.scoresOf(p, hd.q.Rows(i0), &w.kt, rows)
	before := hd.More || lo < j0
	if !w.weighRows(hd, rows, at, before) {
		for i := range rows {
			w.factor[i] = F(w.weigh(hd, i0, i, at+i, j0))
		}
	}
	if before {
		scaleRows(o, w.factor[:rows], hd.VDim)
	}
	w.sumSeen(o, w.narrowed(p, &w.halves.p, rows, &w.v), &w.v, rows, before)
}

// finish divides o of queries i0 to i1-1 by the sums.
func (w *worker[F]) finish(hd *head[F], i0, i1 int) {
	step := hd.Heads * hd.Group
	for b := i0; b < i1; b += qBlock {
		rows := min(qBlock, i1-b)
		w.logRows(b-i0, rows)
		lse := hd.lse[b*step:]
		for i, l := range w.inner[:rows] {
			lse[i*step] = l
		}
		scaleRows(hd.o.Rows(b), w.factor[:rows], hd.VDim)
	}
}

// clearRows zeroes rows of n elements.
func clearRows[F elem.Float](x gemm.Mat[F], rows, n int) {
	for i := range rows {
		clear(x.D[i*x.LD:][:n])
	}
}

// scaleTo computes y = x*f. y may be x.
func scaleTo[F elem.Float](y, x []F, f F) {
	if k, row := loops32(x); k != nil {
		k.Scale(any(y).([]float32), row, float32(f))
		return
	}
	for i, v := range x {
		y[i] = v * f
	}
}

// weigh replaces row i of w.p, dot products with the keys from j0 on, by exp(score - max), times z. It
// updates max and sum at index at, and returns the factor exp(old max - max) for results computed with the
// old max.
func (w *worker[F]) weigh(hd *head[F], i0, i, at, j0 int) float64 {
	row, first := w.visible(w.p[:], i)
	if len(row) == 0 {
		return 1
	}
	scale := hd.scores(row, nil, i0+i, j0+first)
	top := max(w.max[at], scale*highest(row))
	if math.IsInf(float64(top), -1) {
		clear(row)
		return 1
	}
	f := elem.Exp[F](float64(w.max[at]) - float64(top))
	w.max[at], w.sum[at] = top, float64(w.sum[at]*f)+weights(row, scale, float64(top))
	if hd.Dropout > 0 {
		hd.drop(row, i0+i, j0+first)
	}
	return f
}

// drop computes row *= z for the weights of query i and the keys from j on.
func (hd *head[F]) drop(row []F, i, j int) {
	keep := F(1 / (1 - hd.Dropout))
	base := hd.Weight(hd.b, hd.h, hd.g, i, j)
	for j := range row {
		if rng.Keep(hd.Key, base+uint64(j), hd.Dropout) {
			row[j] *= keep
		} else {
			row[j] = 0
		}
	}
}
