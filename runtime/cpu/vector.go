package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/vec"
)

// useVectors puts float32 kernels over loops of package vec into a table. The result for a row or an
// element depends only on it, and sums have a fixed order: the number of threads changes no bit.
func useVectors(t *Kernels[float32], loops *vec.Kernels) {
	vec.Use(loops)
	useElements(loops)
	v := vectors{loops}
	t.SumRows, t.SumCols, t.SumSquares, t.Add = v.sumRows, v.sumCols, v.sumSquares, v.add
	t.LayerNorm, t.LayerNormDX, t.LayerNormDGain = v.layerNorm, v.layerNormDX, v.layerNormDGain
	t.RMSNorm, t.RMSNormDX, t.RMSNormDGain = v.rmsNorm, v.rmsNormDX, v.rmsNormDGain
	t.Embed, t.EmbedGrad, t.EmbedGradBut = v.embed, v.embedGrad, v.embedGradBut
	t.LogSumExp, t.LogSumExpGrad = v.logSumExp, v.logSumExpGrad
	t.CrossEntropy = v.crossEntropy
	t.RoPE, t.RoPEPart, t.Dropout = v.rope, v.ropePart, v.dropout
	t.AdamW, t.Adam = v.adamW, v.adam
}

// vectors holds the kernels over one instruction set's loops.
type vectors struct{ *vec.Kernels }

func (v vectors) add(dst, src []float32) {
	s := sweepOf(len(dst), 1, func(s *sweep, lo, hi int) { vec.Now().Add(s.x[0][lo:hi], s.x[0][lo:hi], s.x[1][lo:hi]) })
	s.x = [5][]float32{dst, src[:len(dst)]}
	s.call()
}

func (v vectors) sumSquares(x []float32) (sum float64) {
	s := sweepOf(len(x), 1, func(s *sweep, lo, hi int) { s.sums[lo/s.per] = vec.Now().SumSquares(s.x[0][lo:hi]) })
	s.x[0] = x
	if n := s.parts(); cap(s.sums) < n {
		s.sums = make([]float64, n)
	} else {
		s.sums = s.sums[:n]
	}
	team.Run(s, s.parts())
	for _, part := range s.sums {
		sum += part
	}
	s.end()
	return sum
}

func (v vectors) sumRows(out, x []float32, rows, cols int, acc bool) {
	out = out[:cols]
	if !acc {
		clear(out)
	}
	if rows > partRowsSummed {
		s := summing(rows, cols, func(s *sweep, lo, hi int) {
			for cols, to := s.i[0], s.summed(lo); lo < hi; lo += bandRows {
				vec.Now().SumRows(to, s.x[1][lo*cols:], min(bandRows, hi-lo), cols)
			}
		})
		s.x[1] = x[:rows*cols]
		s.callSumming(out)
		return
	}
	s := sweepOf(cols, rows, func(s *sweep, lo, hi int) {
		vec.Now().SumRows(s.x[0][lo:hi], s.x[1][lo:], s.i[0], s.n)
	}).aligned(columnUnit)
	s.x, s.i[0] = [5][]float32{out, x[:rows*cols]}, rows
	s.call()
}

// columnUnit is the number of columns that sums over rows process together.
const columnUnit = 64

func (v vectors) sumCols(out, x []float32, rows, cols int, acc bool) {
	for i := range rows {
		if s := float32(v.Sum(x[i*cols:][:cols])); acc {
			out[i] += s
		} else {
			out[i] = s
		}
	}
}

func (v vectors) logSumExp(l, x []float32, rows, cols, valid int) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		for k := vec.Now(); lo < hi; lo++ {
			row := s.x[1][lo*s.i[0]:][:s.i[1]]
			top := k.Largest(row, float32(math.Inf(-1)))
			// no element is above -Inf, and there is no NaN
			if math.IsInf(float64(top), -1) && k.Sum(row) == k.Sum(row) || len(row) == 0 {
				s.x[0][lo] = float32(math.Inf(-1))
				continue
			}
			s.x[0][lo] = float32(float64(top) + rng.Log(k.SumExp(row, top)))
		}
	})
	s.x, s.i = [5][]float32{l, x}, [4]int{cols, valid}
	s.call()
}

func (v vectors) logSumExpGrad(dx, dl, x, l []float32, rows, cols, valid int) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		cols, valid := s.i[0], s.i[1]
		for ; lo < hi; lo++ {
			d, at := s.x[0][lo*cols:][:cols], s.x[3][lo]
			if math.IsInf(float64(at), -1) {
				clear(d)
				continue
			}
			vec.Now().ExpScale(d[:valid], s.x[2][lo*cols:][:valid], at, s.x[1][lo])
			clear(d[valid:])
		}
	})
	s.x, s.i = [5][]float32{dx, dl, x, l}, [4]int{cols, valid}
	s.call()
}

func (v vectors) embed(y, table []float32, ids []int32, cols, lo, n int) {
	s := sweepOf(len(ids), cols, func(s *sweep, a, b int) {
		embed(s.x[0][a*s.i[0]:b*s.i[0]], s.x[1], s.ids[a:b], s.i[0], s.i[1], s.i[2])
	})
	s.x, s.ids, s.i = [5][]float32{y, table}, ids, [4]int{cols, lo, n}
	s.call()
}

func (v vectors) embedGrad(dtable, dy []float32, ids []int32, cols, lo, n int, acc bool) {
	v.embedGradBut(dtable, dy, ids, noID, cols, lo, n, acc)
}

// embedGradBut splits the columns: rows of one id are added in their order.
func (v vectors) embedGradBut(dtable, dy []float32, ids []int32, but, cols, lo, n int, acc bool) {
	if !acc {
		clear(dtable)
	}
	s := sweepOf(cols, len(ids), func(s *sweep, a, b int) {
		for i, id := range s.ids {
			if r, ok := here(id, s.i[1], s.i[2]); ok && int(id) != s.i[3] {
				to := s.x[0][r*s.i[0]+a : r*s.i[0]+b]
				vec.Now().Add(to, to, s.x[1][i*s.i[0]+a:][:b-a])
			}
		}
	}).aligned(columnUnit)
	s.x, s.ids, s.i = [5][]float32{dtable, dy}, ids, [4]int{cols, lo, n, but}
	s.call()
}

func (v vectors) dropout(y, x []float32, p float64, key uint64, view GlobalView) {
	last := view.N - 1
	cols, rows := view.Local[last], 1
	for d := range last {
		rows *= view.Local[d]
	}
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		cols := s.view.Local[s.view.N-1]
		turned := s.key<<32 | s.key>>32
		for ; lo < hi; lo++ {
			first := rng.Counter(s.key, s.view.row(lo))
			vec.Now().Drop(s.x[0][lo*cols:][:cols], s.x[1][lo*cols:][:cols], first, turned, uint64(s.i[0]), s.f[0])
		}
	})
	s.x, s.key, s.view = [5][]float32{y, x}, key, view
	s.i[0], s.f[0] = int(rng.Least(p)), float32(1/(1-p))
	s.call()
}

func (v vectors) adamW(p, g, m, w []float32, o AdamStep) {
	adamVectors(p, g, m, w, o, 1-o.LR*o.WeightDecay, 0)
}

func (v vectors) adam(p, g, m, w []float32, o AdamStep) { adamVectors(p, g, m, w, o, 1, o.WeightDecay) }

// adamVectors computes adamStep.
func adamVectors(p, g, m, w []float32, o AdamStep, keep, decay float64) {
	s := sweepOf(len(p), 1, func(s *sweep, lo, hi int) {
		vec.Now().Adam(s.x[0][lo:hi], s.x[1][lo:hi], s.x[2][lo:hi], s.x[3][lo:hi], &s.adam)
	})
	n := len(p)
	s.x = [5][]float32{p, g[:n], m[:n], w[:n]}
	for i, c := range [10]float64{o.Scale, decay, o.Beta1, 1 - o.Beta1, o.Beta2, 1 - o.Beta2, keep,
		o.LR / (1 - math.Pow(o.Beta1, float64(o.T))), 1 / math.Sqrt(1-math.Pow(o.Beta2, float64(o.T))), o.Eps} {
		s.adam[i] = float32(c)
	}
	s.call()
}
