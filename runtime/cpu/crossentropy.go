package cpu

import (
	"math"
	"sync"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/vec"
)

func crossEntropy[F Float](ce, dx, dl, x []F, ids []int32, rows, cols, valid int) {
	for i := range rows {
		row, grad := x[i*cols:][:valid], dx[i*cols:][:valid]
		at, found := here(ids[i], 0, valid)
		label := 0.0
		if found {
			label = float64(row[at])
		}
		top, log := exponentials(grad, row, dl[i])
		ce[i] = F(float64(top) - label + log)
		if found {
			grad[at] -= dl[i]
		}
		clear(dx[i*cols:][valid:cols])
	}
}

// exponentials computes a row y[j] = dl*exp(x[j]-lse), or 0 if no element is above -Inf. The row's
// log-sum-exp lse is the sum of its maximum, which is returned first, and of the logarithm of a number that
// is at least 1.
func exponentials[F Float](y, x []F, dl F) (top F, log float64) {
	top = elem.Largest(x)
	if math.IsInf(float64(top), -1) {
		clear(y)
		return top, 0
	}
	sum := 0.0
	for j, v := range x {
		e := elem.Exp[F](float64(v - top))
		y[j] = F(e)
		sum += e
	}
	factor := F(float64(dl) / sum)
	for j := range y {
		y[j] *= factor
	}
	return top, rng.Log(sum)
}

// CrossEntropyHalf computes CrossEntropy of 16-bit logits. Their gradient is rounded once.
func CrossEntropyHalf[H num.Half](ce []float32, dx []H, dl []float32, x []H, ids []int32,
	rows, cols, valid int) {
	var z H
	stored := num.ElemBF16
	if _, is := any(z).(num.F16); is {
		stored = num.ElemF16
	}
	lossJob{ce: ce, dl: dl, dx: Half(dx), x: Half(x), elem: stored, ids: ids, rows: rows, cols: cols,
		valid: valid}.run()
}

func (vectors) crossEntropy(ce, dx, dl, x []float32, ids []int32, rows, cols, valid int) {
	lossJob{ce: ce, dl: dl, dx: Wide(dx), x: Wide(x), elem: num.Native, ids: ids, rows: rows, cols: cols,
		valid: valid}.run()
}

// lossJob is a call of CrossEntropy on float32 or 16-bit logits as a job, whose parts are some rows each.
type lossJob struct {
	ce, dl     []float32
	dx, x      Span[float32]
	elem       num.Elem
	ids        []int32
	rows, cols int
	valid      int // columns that are not padding
	per        int // rows per part
}

var lossJobs = sync.Pool{New: func() any { return new(lossJob) }}

// run runs the job on the thread team.
func (j lossJob) run() {
	c := lossJobs.Get().(*lossJob)
	*c = j
	c.per = max(partElems/max(c.cols, 1), (c.rows+team.MaxParts-1)/team.MaxParts, 1)
	team.Run(c, (c.rows+c.per-1)/c.per)
	*c = lossJob{}
	lossJobs.Put(c)
}

func (c *lossJob) Part(i int) {
	r := logitRows.Get().(*logitRow)
	for row := i * c.per; row < min((i+1)*c.per, c.rows); row++ {
		c.row(r, row)
	}
	logitRows.Put(r)
}

// row processes one row. A row of 16-bit numbers is copied, so that its exponentials are not rounded.
func (c *lossJob) row(r *logitRow, i int) {
	at, found := here(c.ids[i], 0, c.valid)
	r.x, r.y, r.half = nil, nil, nil
	if from := i * c.cols; c.elem == num.Native {
		r.x, r.y = c.x.wide[from:][:c.valid], c.dx.wide[from:][:c.valid]
	} else {
		if cap(r.own) < c.valid {
			r.own = make([]float32, c.valid)
		}
		r.x, r.y, r.half = r.own[:c.valid], r.own[:c.valid], c.x.half[from:][:c.valid]
	}
	label := 0.0
	if found && r.half == nil {
		label = float64(r.x[at])
	} else if found {
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
	if found {
		r.y[at] -= dl
	}
	if r.half == nil {
		clear(c.dx.wide[i*c.cols:][c.valid:c.cols])
	} else {
		num.StoreBits(c.dx.half[i*c.cols:][:c.valid], r.y, c.elem)
		clear(c.dx.half[i*c.cols:][c.valid:c.cols])
	}
	r.x, r.y, r.half = nil, nil, nil
}

// The exponentials of a row of logits are computed part by part, relative to the part's own maximum, so
// that the row is loaded into the first-level cache once. Then each part is scaled by the difference of its
// maximum to the row's. A row that fits the second-level cache is thus read from memory once and written
// once.
const (
	partLogits = 4096 // 16 KiB
	rowParts   = 64   // at most; longer rows have longer parts
)

// logitRow is the working memory of a thread for a row.
type logitRow struct {
	x, y []float32
	half []uint16  // 16-bit source of x, or nil
	own  []float32 // memory for x and y in that case

	// For each part: its maximum, its sum, and exp(its maximum - the row's maximum).
	top        [rowParts]float32
	sum, below [rowParts]float64
}

var logitRows = sync.Pool{New: func() any { return new(logitRow) }}

// exponentials computes the same as the function exponentials.
func (r *logitRow) exponentials(k *vec.Kernels, stored num.Elem, dl float32) (top float32, log float64) {
	n := len(r.x)
	per := max(partLogits, (n+rowParts*16-1)/(rowParts*16)*16)
	parts := (n + per - 1) / per
	top = float32(math.Inf(-1))
	for p := range parts {
		from, to := p*per, min((p+1)*per, n)
		if r.half != nil {
			num.LoadBits(r.x[from:to], r.half[from:to], stored)
		}
		r.top[p], r.sum[p] = partExponentials(k, r.y[from:to], r.x[from:to])
		top = max(top, r.top[p])
	}
	sum := 0.0
	for p := range parts {
		r.below[p] = 1
		if r.top[p] != top {
			r.below[p] = elem.Exp[float64](float64(r.top[p]) - float64(top))
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

// partExponentials sets y to the exponentials of x relative to the maximum, and returns the maximum and
// their sum.
func partExponentials(k *vec.Kernels, y, x []float32) (top float32, sum float64) {
	top = k.Largest(x, float32(math.Inf(-1)))
	if !math.IsInf(float64(top), -1) {
		return top, k.ExpPart(y, x, top)
	}
	if s := k.Sum(x); s != s { // there is a NaN, or
		sum = s
	}
	clear(y) // no element is above -Inf
	return top, sum
}
