package comm

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/vec"
)

// Float is the element type of a collective. 16-bit elements are sent as such; their sums are computed in float32, in
// the members' order, and rounded once.
type Float interface{ num.Stored }

// Elem is the element type of a collective that only moves elements.
type Elem interface{ num.Stored | int32 }

// Op is the operation of a reduction.
type Op uint8

const (
	Sum Op = iota
	Max    // NaN wins
	LSE    // log of the sum of exponentials
)

func (o Op) String() string { return [...]string{Sum: "sum", Max: "max", LSE: "lse"}[o] }

var allReduceNames = [...]string{Sum: "all_reduce(sum)", Max: "all_reduce(max)", LSE: "all_reduce(lse)"}

// open publishes data and returns when every member has published its own.
func open[F Elem](g *Group, op string, data []F) error {
	s := &g.ch.seats[g.me]
	s.op, s.data, s.n, s.elem = op, unsafe.Pointer(unsafe.SliceData(data)), len(data), elemSize[F]()
	if err := g.ch.meet(g.me, op); err != nil {
		return err
	}
	g.track.Arrive(g.mark)
	for i := range g.ch.seats {
		t := &g.ch.seats[i]
		if t.op != s.op || t.n != s.n || t.elem != s.elem {
			err := &Mismatch{Group: g.ch.name, Rank: g.ch.ranks[g.me], Peer: g.ch.ranks[i], RankCall: s.call(),
				PeerCall: t.call()}
			g.ch.world.Fail(err)
			return err
		}
	}
	return nil
}

func (s *seat) call() string { return fmt.Sprintf("%s of %d × f%d", s.op, s.n, 8*s.elem) }

// peer returns what member i has published.
func peer[F Elem](g *Group, i int) []F {
	s := &g.ch.seats[i]
	return unsafe.Slice((*F)(s.data), s.n)
}

// AllReduce reduces the members' elements with op, in the members' order, and stores the result in every member's buf:
//
//	for j := range buf { buf[j] = op(buf_0[j], buf_1[j], ...) }
//
// Each of n members computes 1/n of the result and writes it to all buffers.
func AllReduce[F Float](g *Group, buf []F, op Op) error {
	n := g.Size()
	if n == 1 || len(buf) == 0 {
		return nil
	}
	g.begin("all_reduce", len(buf)*elemSize[F]())
	name := allReduceNames[op]
	if err := open(g, name, buf); err != nil {
		return err
	}
	lo, hi := chunk(len(buf), n, g.me)
	var block [blockLen]F
	for ; lo < hi; lo += blockLen {
		out := block[:min(blockLen, hi-lo)]
		reduceBlock(g, out, lo, op)
		for i := range n {
			copy(peer[F](g, i)[lo:], out)
		}
	}
	return g.end(name)
}

// blockLen is how many elements are reduced at a time, so that they stay in the L1 cache.
const blockLen = 1024

// chunk returns the part of length elements that member me of n computes. Borders are multiples of 16 elements, so that
// two members never write the same cache line of an aligned buffer.
func chunk(length, n, me int) (lo, hi int) {
	width := (length + n - 1) / n
	width = (width + 15) &^ 15
	return min(me*width, length), min((me+1)*width, length)
}

func elemSize[F Elem]() int {
	var z F
	return int(unsafe.Sizeof(z))
}

// reduceBlock sets out to the reduction of the members' elements from at, in the members' order.
func reduceBlock[F Float](g *Group, out []F, at int, op Op) {
	switch out := any(out).(type) {
	case []float32:
		reduceWide(g, out, at, op)
	case []float64:
		reduceWide(g, out, at, op)
	case []num.BF16:
		reduceHalf(g, out, at, op)
	case []num.F16:
		reduceHalf(g, out, at, op)
	}
}

// reduceHalf is reduceBlock in float32, rounded at the end.
func reduceHalf[H num.Half](g *Group, out []H, at int, op Op) {
	var sum, next [blockLen]float32
	for i := range g.Size() {
		in := peer[H](g, i)[at:][:len(out)]
		switch {
		case i == 0:
			num.Load(sum[:], in)
		case op == Sum:
			num.Load(next[:], in)
			for j := vec.AddTo(sum[:len(in)], next[:]); j < len(in); j++ {
				sum[j] += next[j]
			}
		case op == Max:
			num.Load(next[:], in)
			for j := range in {
				sum[j] = max(sum[j], next[j])
			}
		default:
			panic("comm: " + op.String() + " of 16-bit elements: statistics are wider")
		}
	}
	num.Store(out, sum[:len(out)])
}

// reduceWide is reduceBlock for elements of the type of the sums. Log-sum-exp is computed in float64.
func reduceWide[F float32 | float64](g *Group, out []F, at int, op Op) {
	switch op {
	case Sum:
		copy(out, peer[F](g, 0)[at:])
		for i := 1; i < g.Size(); i++ {
			addTo(out, peer[F](g, i)[at:][:len(out)])
		}
	case Max:
		copy(out, peer[F](g, 0)[at:])
		for i := 1; i < g.Size(); i++ {
			in := peer[F](g, i)[at:][:len(out)]
			for j, x := range in {
				out[j] = max(out[j], x)
			}
		}
	case LSE:
		for j := range out {
			out[j] = logSumExp[F](g, at+j)
		}
	}
}

// addTo computes out += in, with vector instructions if available.
func addTo[F float32 | float64](out, in []F) {
	done := 0
	if out, ok := any(out).([]float32); ok {
		done = vec.AddTo(out, any(in).([]float32))
	}
	for j := done; j < len(in); j++ {
		out[j] += in[j]
	}
}

// logSumExp returns log Σ_i exp(x_i[j]) over the members, computed in float64. It is safe for large x and for -Inf.
func logSumExp[F float32 | float64](g *Group, j int) F {
	top := math.Inf(-1)
	for i := range g.Size() {
		top = max(top, float64(peer[F](g, i)[j]))
	}
	if math.IsInf(top, 0) || math.IsNaN(top) {
		return F(top)
	}
	sum := 0.0
	for i := range g.Size() {
		sum += math.Exp(float64(peer[F](g, i)[j]) - top)
	}
	return F(top + math.Log(sum))
}

// AllGather concatenates the members' parts of every row:
//
//	for o := range outer { for i, j in part i { dst[o, i*inner+j] = src_i[o, j] } }
//
// Rows of dst are total wide, of src inner; part i ends at column min((i+1)*inner, total). src may be this member's own
// part of dst if outer is 1.
func AllGather[F Elem](g *Group, dst, src []F, outer, inner, total int) error {
	n := g.Size()
	if n == 1 {
		gatherPart(dst, src, 0, outer, inner, total)
		return nil
	}
	g.begin("all_gather", outer*total*elemSize[F]())
	if err := open(g, "all_gather", src); err != nil {
		return err
	}
	for k := range n {
		i := (g.me + k) % n // members start at different parts
		gatherPart(dst, peer[F](g, i), i, outer, inner, total)
	}
	return g.end("all_gather")
}

func gatherPart[F Elem](dst, src []F, i, outer, inner, total int) {
	lo, hi := min(i*inner, total), min((i+1)*inner, total)
	if lo == hi || outer == 0 || &dst[lo] == &src[0] {
		return
	}
	for o := range outer {
		copy(dst[o*total+lo:o*total+hi], src[o*inner:])
	}
}

// ReduceScatter computes on member me the sum of its columns of every row:
//
//	for o := range outer { for j := range inner { dst[o, j] = Σ_i src_i[o, me*inner+j] } }
//
// Rows of src are Size×inner wide. dst may be this member's own part of src if outer is 1.
func ReduceScatter[F Float](g *Group, dst, src []F, outer, inner int) error {
	n := g.Size()
	if n == 1 {
		if outer*inner > 0 && &dst[0] != &src[0] {
			copy(dst[:outer*inner], src)
		}
		return nil
	}
	g.begin("reduce_scatter", n*outer*inner*elemSize[F]())
	if err := open(g, "reduce_scatter", src); err != nil {
		return err
	}
	var block [blockLen]F // a buffer, because dst may be part of src
	for o := range outer {
		at := (o*n + g.me) * inner
		for lo := 0; lo < inner; lo += blockLen {
			out := block[:min(blockLen, inner-lo)]
			reduceBlock(g, out, at+lo, Sum)
			copy(dst[o*inner+lo:], out)
		}
	}
	return g.end("reduce_scatter")
}

// Slice is the local counterpart of AllGather's gradient: this member's columns of every row,
//
//	for o := range outer { for j := range inner { dst[o, j] = src[o, me*inner+j] } }
//
// where rows of src are Size×inner wide.
func Slice[T any](g *Group, dst, src []T, outer, inner int) {
	width := g.Size() * inner
	for o := range outer {
		copy(dst[o*inner:(o+1)*inner], src[o*width+g.me*inner:])
	}
}

// Barrier returns when every member has called it.
func Barrier(g *Group) error {
	if g.Size() == 1 {
		return nil
	}
	return g.ch.meet(g.me, "barrier")
}
