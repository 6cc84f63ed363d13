package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/rng"
)

func logSumExp[F Float](l, x []F, rows, cols, valid int) {
	for i := range rows {
		row := x[i*cols:][:valid]
		top := largest(row)
		if math.IsInf(float64(top), -1) { // no element, or none above -Inf
			l[i] = top
			continue
		}
		var sum float64
		for _, v := range row {
			sum += exp[F](float64(v - top))
		}
		l[i] = F(float64(top) + rng.Log(sum))
	}
}

// largest returns the maximum of x: -Inf if it is empty, and NaN if there is one.
func largest[F Float](x []F) F {
	top := F(math.Inf(-1))
	for _, v := range x {
		if v > top || v != v {
			top = v
		}
	}
	return top
}

func logSumExpGrad[F Float](dx, dl, x, l []F, rows, cols, valid int) {
	for i := range rows {
		xi, di := x[i*cols:][:cols], dx[i*cols:][:cols]
		if math.IsInf(float64(l[i]), -1) {
			clear(di)
			continue
		}
		for j, v := range xi[:valid] {
			di[j] = F(dl[i] * F(exp[F](float64(v-l[i]))))
		}
		clear(di[valid:])
	}
}

func pick[F Float](y, x []F, ids []int32, rows, cols, lo, n int) {
	for i := range rows {
		y[i] = 0
		if j, ok := here(ids[i], lo, n); ok {
			y[i] = x[i*cols+j]
		}
	}
}

func pickGrad[F Float](dx, dy []F, ids []int32, rows, cols, lo, n int) {
	clear(dx[:rows*cols])
	for i := range rows {
		if j, ok := here(ids[i], lo, n); ok {
			dx[i*cols+j] = dy[i]
		}
	}
}
