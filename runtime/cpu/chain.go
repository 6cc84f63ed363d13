package cpu

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/planc-dev/planc/runtime/num"
)

// A Chain is element-wise operations on rows × cols elements, done link by link on a strip of each row at a time, so
// that what only the chain uses stays in the first cache. Generated code has one for each group of the compiler's.
type Chain struct {
	Operands []Operand
	Links    []Link
}

// An Operand says where the elements of a chain's operand are.
type Operand struct {
	At   At
	Elem num.Elem // how it is stored; zero is as the kernels compute
}

// At is which elements an operand has.
type At uint8

const (
	Whole  At = iota // one for each of rows × cols
	PerCol           // cols, for every row the same
	PerRow           // one for each row
	One              // one for all
	Temp             // none: the chain's own
)

// A Link sets operand To, element by element, to Do of operands A and B and of the number C, rounded to Round.
type Link struct {
	Do       Do
	To, A, B int
	C        float64
	Round    num.Elem
}

// Do is an operation on elements a and b and a number c.
type Do uint8

const (
	DoCopy        Do = iota // a
	DoAdd                   // a + b
	DoSub                   // a - b
	DoMul                   // a * b
	DoScale                 // c * a
	DoGelu                  // Gelu(a)
	DoGeluErf               // GeluErf(a)
	DoSilu                  // Silu(a)
	DoRelu                  // Relu(a)
	DoSoftcap               // Softcap(a, c)
	DoGeluGrad              // a * GeluGrad(b)
	DoGeluErfGrad           // a * GeluErfGrad(b)
	DoSiluGrad              // a * SiluGrad(b)
	DoReluGrad              // a * ReluGrad(b)
	DoSoftcapGrad           // a * SoftcapGrad(b, c)
	numDos
)

// stripLen is how many elements of a row the links do at a time, and maxOperands how many operands a chain has at most.
const (
	stripLen    = 512
	maxOperands = 16
)

// Span is a chain's operand: elements as the kernels compute, or the patterns of numbers of 16 bits.
type Span[F Float] struct {
	wide []F
	half []uint16
}

// Wide is an operand that is stored as the kernels compute.
func Wide[F Float](x []F) Span[F] { return Span[F]{wide: x} }

// Half is an operand of 16 bits.
func Half[H num.Half](x []H) Span[float32] {
	return Span[float32]{half: unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))}
}

// Chain is
//
//	for i, j := range [rows, cols] { for each link { to[i,j] = round(do(a[i,j], b[i,j], c)) } }
//
// over operands xs, those that are not the chain's own, in its order.
func (k *Kernels[F]) Chain(c *Chain, rows, cols int, xs ...[]F) {
	r := newChainRun[F](c, rows, cols)
	for i, x := range xs {
		r.x[i].wide = x
	}
	r.call()
}

// ChainOf is Chain, where some operands are stored in 16 bits.
func (k *Kernels[F]) ChainOf(c *Chain, rows, cols int, xs ...Span[F]) {
	r := newChainRun[F](c, rows, cols)
	copy(r.x[:], xs)
	r.call()
}

// chainRun is a call as a job, whose parts are some strips each.
type chainRun[F Float] struct {
	c          *Chain
	rows, cols int
	across     int // strips of a row
	per        int // strips of a part
	x          [maxOperands]Span[F]
	do         *elements[F]
}

var chainRuns = [2]sync.Pool{{New: func() any { return new(chainRun[float32]) }}, {New: func() any { return new(chainRun[float64]) }}}

func newChainRun[F Float](c *Chain, rows, cols int) *chainRun[F] {
	if len(c.Operands) > maxOperands {
		panic(fmt.Sprintf("cpu: a chain of %d operands; at most %d are possible", len(c.Operands), maxOperands))
	}
	var z F
	r := chainRuns[unsafe.Sizeof(z)/8].Get().(*chainRun[F])
	r.c, r.rows, r.cols, r.across, r.do = c, rows, cols, (cols+stripLen-1)/stripLen, elementsOf[F]()
	r.per = max(partElems/min(max(cols, 1), stripLen), (rows*r.across+maxParts-1)/maxParts, 1)
	return r
}

func (r *chainRun[F]) call() {
	run(r, (r.rows*r.across+r.per-1)/r.per)
	r.x = [maxOperands]Span[F]{}
	var z F
	chainRuns[unsafe.Sizeof(z)/8].Put(r)
}

func (r *chainRun[F]) part(i int) {
	w := bandsOf[F]()
	for s := i * r.per; s < min((i+1)*r.per, r.rows*r.across); s++ {
		row, from := s/r.across, s%r.across*stripLen
		r.strip(w, row, from, min(stripLen, r.cols-from))
	}
	var z F
	bandPools[unsafe.Sizeof(z)/8].Put(w)
}

// bands are what a part works in: a strip for each operand that is not read and written where it lies.
type bands[F Float] struct {
	own [maxOperands][stripLen]F
	now [maxOperands][]F // the present strip of each operand; nil: not read yet
}

var bandPools = [2]sync.Pool{{New: func() any { return new(bands[float32]) }}, {New: func() any { return new(bands[float64]) }}}

func bandsOf[F Float]() *bands[F] {
	var z F
	return bandPools[unsafe.Sizeof(z)/8].Get().(*bands[F])
}

// strip does the links for n elements of a row.
func (r *chainRun[F]) strip(w *bands[F], row, from, n int) {
	for i, o := range r.c.Operands {
		w.now[i] = nil
		switch at := r.offset(o.At, row, from); {
		case o.At == Temp:
			w.now[i] = w.own[i][:n]
		case o.Elem == 0 && o.At <= PerCol:
			w.now[i] = r.x[i].wide[at : at+n]
		}
	}
	for i := range r.c.Links {
		l := &r.c.Links[i]
		c := F(l.C)
		do, a := l.Do, r.read(w, l.A, row, from, n)
		var b []F
		if do == DoMul && r.single(l.B) {
			do, c = DoScale, r.value(l.B, row)
		} else if do >= DoGeluGrad || do >= DoAdd && do <= DoMul {
			b = r.read(w, l.B, row, from, n)
		}
		to := w.now[l.To]
		if to == nil {
			to = w.own[l.To][:n]
			w.now[l.To] = to
		}
		r.do[do](to, a, b, c)
		r.round(to, l, row, from)
	}
}

// offset is where a strip of an operand begins.
func (r *chainRun[F]) offset(at At, row, from int) int {
	switch at {
	case Whole:
		return row*r.cols + from
	case PerCol:
		return from
	case PerRow:
		return row
	}
	return 0
}

func (r *chainRun[F]) single(i int) bool {
	at := r.c.Operands[i].At
	return at == PerRow || at == One
}

// value is the element of an operand that has one for the whole strip.
func (r *chainRun[F]) value(i, row int) F {
	at := r.offset(r.c.Operands[i].At, row, 0)
	switch r.c.Operands[i].Elem {
	case num.ElemBF16:
		return F(num.BF16{Bits: r.x[i].half[at]}.Wide())
	case num.ElemF16:
		return F(num.F16{Bits: r.x[i].half[at]}.Wide())
	}
	return r.x[i].wide[at]
}

// read is an operand's strip as the kernels compute.
func (r *chainRun[F]) read(w *bands[F], i, row, from, n int) []F {
	if w.now[i] != nil {
		return w.now[i]
	}
	own, o := w.own[i][:n], r.c.Operands[i]
	w.now[i] = own
	if r.single(i) {
		v := r.value(i, row)
		for j := range own {
			own[j] = v
		}
		return own
	}
	at := r.offset(o.At, row, from)
	num.LoadBits(single(own), r.x[i].half[at:at+n], o.Elem)
	return own
}

// single is x, whose type is float32: what is computed beside numbers of 16 bits.
func single[F Float](x []F) []float32 { return *(*[]float32)(unsafe.Pointer(&x)) }

// round rounds a link's result, and stores it where it is kept in 16 bits.
func (r *chainRun[F]) round(to []F, l *Link, row, from int) {
	if l.Round != 0 {
		num.Round(single(to), l.Round)
	}
	if o := r.c.Operands[l.To]; o.Elem != 0 {
		at := r.offset(o.At, row, from)
		num.StoreBits(r.x[l.To].half[at:at+len(to)], single(to), o.Elem)
	}
}
