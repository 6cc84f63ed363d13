package cpu

import (
	"math"
	"sync"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/vec"
)

func crossEntropy[F Float](ce, dx, dl, x []F, ids []int32, rows, cols int) {
	for i := range rows {
		row, grad := x[i*cols:][:cols], dx[i*cols:][:cols]
		at, there := here(ids[i], 0, cols)
		label := 0.0
		if there {
			label = float64(row[at])
		}
		top, log := exponentials(grad, row, dl[i])
		ce[i] = F(float64(top) - label + log)
		if there {
			grad[at] -= dl[i]
		}
	}
}

// exponentials makes a row y[j] = dl*exp(x[j]-lse), or 0 where nothing is above -Inf. The row's log-sum-exp lse is the
// sum of its maximum, which is first, and of the logarithm of a number that is at least 1.
func exponentials[F Float](y, x []F, dl F) (top F, log float64) {
	top = largest(x)
	if math.IsInf(float64(top), -1) {
		clear(y)
		return top, 0
	}
	sum := 0.0
	for j, v := range x {
		e := exp[F](float64(v - top))
		y[j] = F(e)
		sum += e
	}
	factor := F(float64(dl) / sum)
	for j := range y {
		y[j] *= factor
	}
	return top, rng.Log(sum)
}

// CrossEntropyHalf is the kernel CrossEntropy on logits of 16 bits, whose gradient is rounded to them once.
func CrossEntropyHalf[H num.Half](ce []float32, dx []H, dl []float32, x []H, ids []int32, rows, cols int) {
	var z H
	elem := num.ElemBF16
	if _, is := any(z).(num.F16); is {
		elem = num.ElemF16
	}
	classify(ce, dl, Half(dx), Half(x), elem, ids, rows, cols)
}

func (vectors) crossEntropy(ce, dx, dl, x []float32, ids []int32, rows, cols int) {
	classify(ce, dl, Wide(dx), Wide(x), num.Native, ids, rows, cols)
}

// classifier is a call of CrossEntropy on float32 or on 16 bits as a job, whose parts are some rows each.
type classifier struct {
	ce, dl     []float32
	dx, x      Span[float32]
	elem       num.Elem
	ids        []int32
	rows, cols int
	per        int // rows of a part
}

var classifiers = sync.Pool{New: func() any { return new(classifier) }}

func classify(ce, dl []float32, dx, x Span[float32], elem num.Elem, ids []int32, rows, cols int) {
	c := classifiers.Get().(*classifier)
	*c = classifier{ce: ce, dl: dl, dx: dx, x: x, elem: elem, ids: ids, rows: rows, cols: cols}
	c.per = max(partElems/max(cols, 1), (rows+maxParts-1)/maxParts, 1)
	run(c, (rows+c.per-1)/c.per)
	*c = classifier{}
	classifiers.Put(c)
}

func (c *classifier) part(i int) {
	r := logitRows.Get().(*logitRow)
	for row := i * c.per; row < min((i+1)*c.per, c.rows); row++ {
		c.row(r, row)
	}
	logitRows.Put(r)
}

// row does one row: of 16 bits in a copy, where the row's exponentials are exact.
func (c *classifier) row(r *logitRow, i int) {
	at, there := here(c.ids[i], 0, c.cols)
	r.x, r.y, r.half = nil, nil, nil
	if from := i * c.cols; c.elem == num.Native {
		r.x, r.y = c.x.wide[from:][:c.cols], c.dx.wide[from:][:c.cols]
	} else {
		if cap(r.own) < c.cols {
			r.own = make([]float32, c.cols)
		}
		r.x, r.y, r.half = r.own[:c.cols], r.own[:c.cols], c.x.half[from:][:c.cols]
	}
	label := 0.0
	if there && r.half == nil {
		label = float64(r.x[at])
	} else if there {
		var one [1]float32
		num.LoadBits(one[:], r.half[at:at+1], c.elem)
		label = float64(one[0])
	}
	k, dl := vec.Now(), c.dl[i]
	var top float32
	var log float64
	if k != nil {
		top, log = r.exponentials(k, c.elem, dl)
	} else {
		if r.half != nil {
			num.LoadBits(r.x, r.half, c.elem)
		}
		top, log = exponentials(r.y, r.x, dl)
	}
	c.ce[i] = float32(float64(top) - label + log)
	if there {
		r.y[at] -= dl
	}
	if r.half != nil {
		num.StoreBits(c.dx.half[i*c.cols:][:c.cols], r.y, c.elem)
	}
	r.x, r.y, r.half = nil, nil, nil
}

// A row of logits becomes exponentials a part at a time, by the part's own maximum, so that the row comes into the
// first cache once; then each part is scaled by what its maximum is below the row's. So a row of any length that the
// second cache holds is read from memory once and written once.
const (
	partLogits = 4096 // 16 KiB
	rowParts   = 64   // at most; longer rows have longer parts
)

// logitRow is where a thread does a row.
type logitRow struct {
	x, y []float32
	half []uint16  // what x is widened from, if that is 16 bits
	own  []float32 // for these

	// Of each part: its maximum, its sum, and e to the power of how far its maximum is below the row's.
	top        [rowParts]float32
	sum, below [rowParts]float64
}

var logitRows = sync.Pool{New: func() any { return new(logitRow) }}

// exponentials is the loop of that name.
func (r *logitRow) exponentials(k *vec.Kernels, elem num.Elem, dl float32) (top float32, log float64) {
	n := len(r.x)
	per := max(partLogits, (n+rowParts*16-1)/(rowParts*16)*16)
	parts := (n + per - 1) / per
	top = float32(math.Inf(-1))
	for p := range parts {
		from, to := p*per, min((p+1)*per, n)
		if r.half != nil {
			num.LoadBits(r.x[from:to], r.half[from:to], elem)
		}
		r.top[p], r.sum[p] = partExponentials(k, r.y[from:to], r.x[from:to])
		top = max(top, r.top[p])
	}
	sum := 0.0
	for p := range parts {
		r.below[p] = 1
		if r.top[p] != top {
			r.below[p] = exp[float64](float64(r.top[p]) - float64(top))
		}
		sum += r.sum[p] * r.below[p]
	}
	if sum == 0 {
		return top, 0
	}
	for p := range parts {
		y := r.y[p*per : min((p+1)*per, n)]
		k.Scale(y, y, float32(float64(dl)/sum*r.below[p]))
	}
	return top, rng.Log(sum)
}

// partExponentials makes y exponentials of x by the largest of them, and returns that and their sum.
func partExponentials(k *vec.Kernels, y, x []float32) (top float32, sum float64) {
	top = k.Largest(x, float32(math.Inf(-1)))
	if !math.IsInf(float64(top), -1) {
		return top, k.ExpPart(y, x, top)
	}
	if s := k.Sum(x); s != s { // a NaN among them, or
		sum = s
	}
	clear(y) // none above -Inf
	return top, sum
}
