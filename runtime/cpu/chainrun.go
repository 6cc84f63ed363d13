package cpu

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/num"
)

// chainRun is a call of a chain as a job, whose parts are some strips each.
type chainRun[F Float] struct {
	c          *Chain
	rows, cols int
	length     int // elements of a strip: a whole row if a link needs that
	across     int // strips per row
	tall       int // rows per strip
	per        int // strips per part
	x          [maxOperands]Span[F]
	do         *elements[F]
}

var chainRuns = [2]sync.Pool{{New: func() any {
	return new(chainRun[float32])
}}, {New: func() any {
	return new(chainRun[float64])
}}}

func newChainRun[F Float](c *Chain, rows, cols int) *chainRun[F] {
	if len(c.Operands) > maxOperands {
		panic(fmt.Sprintf("cpu: a chain has %d operands, but the maximum is %d", len(c.Operands), maxOperands))
	}
	var z F
	r := chainRuns[unsafe.Sizeof(z)/8].Get().(*chainRun[F])
	r.c, r.rows, r.cols, r.length, r.do = c, rows, cols, stripLen, elementsOf[F]()
	for i := range c.Links {
		if c.Links[i].Do > numDos {
			r.length = cols
		}
	}
	r.length = max(r.length, 1)
	r.across, r.tall = (cols+r.length-1)/r.length, r.together()
	strips := r.strips()
	r.per = max(partElems/(min(max(cols, 1), r.length)*r.tall), (strips+team.MaxParts-1)/team.MaxParts, 1)
	return r
}

// together returns the number of rows of a strip. There are several if links need whole rows, these are
// short, and operands of element-wise links have as many elements as their results.
func (r *chainRun[F]) together() int {
	if r.across > 1 || r.length != r.cols {
		return 1
	}
	for i := range r.c.Links {
		l := &r.c.Links[i]
		if (l.Do <= numDos || l.Do == DoAddPick) && (r.short(l.A) || l.Do.two() && r.short(l.B)) {
			return 1
		}
	}
	return max(1, min(tallRows, tallElems/r.cols))
}

// short reports whether an operand has fewer elements than the chain.
func (r *chainRun[F]) short(i int) bool {
	at := r.c.Operands[i].At
	return at != Whole && at != Temp
}

func (r *chainRun[F]) strips() int { return (r.rows + r.tall - 1) / r.tall * r.across }

func (r *chainRun[F]) call() {
	team.Run(r, (r.strips()+r.per-1)/r.per)
	r.x = [maxOperands]Span[F]{}
	var z F
	chainRuns[unsafe.Sizeof(z)/8].Put(r)
}

func (r *chainRun[F]) Part(i int) {
	w := bandsOf[F]()
	for s := i * r.per; s < min((i+1)*r.per, r.strips()); s++ {
		row, from := s/r.across*r.tall, s%r.across*r.length
		r.strip(w, row, min(r.tall, r.rows-row), from, min(r.length, r.cols-from))
	}
	var z F
	bandPools[unsafe.Sizeof(z)/8].Put(w)
}

// bands is the working memory of a part: a strip for each operand that is not read and written in place.
type bands[F Float] struct {
	own [maxOperands][]F // as long as the longest strip so far
	now [maxOperands][]F // the present strip of each operand; nil: not read yet

	mean, rstd [tallRows]float32 // of a norm's rows
}

var bandPools = [2]sync.Pool{{New: func() any {
	return new(bands[float32])
}}, {New: func() any {
	return new(bands[float64])
}}}

func bandsOf[F Float]() *bands[F] {
	var z F
	return bandPools[unsafe.Sizeof(z)/8].Get().(*bands[F])
}

// strip applies the links to n elements of each of rows rows. If there are several rows, n must be all of a
// row.
func (r *chainRun[F]) strip(w *bands[F], row, rows, from, n int) {
	for i, o := range r.c.Operands {
		w.now[i] = nil
		switch at := r.offset(o.At, row, from); {
		case o.At == Temp:
			w.now[i] = w.room(i, rows*n)
		case o.Elem == 0 && o.At == Whole:
			w.now[i] = r.x[i].wide[at : at+rows*n]
		case o.Elem == 0 && o.At == PerCol:
			w.now[i] = r.x[i].wide[at : at+n]
		}
	}
	for i := range r.c.Links {
		l := &r.c.Links[i]
		to := w.now[l.To]
		if to == nil {
			to = w.room(l.To, rows*n)
			w.now[l.To] = to
		}
		if l.Do > numDos {
			r.link(w, l, row, rows, to)
		} else {
			r.elements(w, l, row, from, to)
		}
		r.round(to, l, row, from)
	}
}

// elements applies a link's operation to the elements of a strip.
func (r *chainRun[F]) elements(w *bands[F], l *Link, row, from int, to []F) {
	do, c := l.Do, F(l.C)
	if do == DoSiluMulGrad {
		r.gate(w, l, row, from, to)
		return
	}
	a := r.read(w, l.A, row, from, len(to))
	var b []F
	if do == DoMul && r.single(l.B) {
		do, c = DoScale, r.value(l.B, row)
	} else if do.two() {
		b = r.read(w, l.B, row, from, len(to))
	}
	r.do[do](to, a, b, c)
}

// gate computes both gradients of SwiGLU's gate.
func (r *chainRun[F]) gate(w *bands[F], l *Link, row, from int, da []F) {
	n, db := len(da), w.now[l.More[1]]
	dy, a, b := r.read(w, l.A, row, from, n), r.read(w, l.B, row, from, n), r.read(w, l.More[0], row, from, n)
	if k := vectorsFor[F](); k != nil {
		k.SiluMulGrad(single(da), single(db), single(dy), single(a), single(b))
		return
	}
	for i, x := range a[:n] {
		da[i], db[i] = F(F(dy[i]*b[i])*SiluGrad(x)), F(dy[i]*Silu(x))
	}
}

// room returns operand i's own strip of n elements.
func (w *bands[F]) room(i, n int) []F {
	if cap(w.own[i]) < n {
		w.own[i] = make([]F, max(n, stripLen))
	}
	return w.own[i][:n]
}

// offset returns where a strip of an operand begins.
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

// value returns the element of an operand that has one for the whole strip.
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

// read returns an operand's strip of n elements in the type of the kernels.
func (r *chainRun[F]) read(w *bands[F], i, row, from, n int) []F {
	if w.now[i] != nil {
		return w.now[i]
	}
	own, o := w.room(i, n), r.c.Operands[i]
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

// single converts x, whose type must be float32, the compute type of 16-bit numbers.
func single[F Float](x []F) []float32 { return *(*[]float32)(unsafe.Pointer(&x)) }

// round rounds a link's result, and stores it if it is kept in 16 bits.
func (r *chainRun[F]) round(to []F, l *Link, row, from int) {
	if l.Round != 0 {
		num.Round(single(to), l.Round)
	}
	if o := r.c.Operands[l.To]; o.Elem != 0 {
		at := r.offset(o.At, row, from)
		num.StoreBits(r.x[l.To].half[at:at+len(to)], single(to), o.Elem)
	}
}
