package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/rng"
)

func logSumExp[F Float](l, x []F, rows, cols, valid int) {
	for i := range rows {
		row := x[i*cols:][:valid]
		top := elem.Largest(row)
		if math.IsInf(float64(top), -1) { // no element, or none above -Inf
			l[i] = top
			continue
		}
		var sum float64
		for _, v := range row {
			sum += elem.Exp[F](float64(v - top))
		}
		l[i] = F(float64(top) + rng.Log(sum))
	}
}

func logSumExpGrad[F Float](dx, dl, x, l []F, rows, cols, valid int) {
	for i := range rows {
		xi, di := x[i*cols:][:cols], dx[i*cols:][:cols]
		if math.IsInf(float64(l[i]), -1) {
			clear(di)
			continue
		}
		for j, v := range xi[:valid] {
			di[j] = F(dl[i] * F(elem.Exp[F](float64(v-l[i]))))
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
