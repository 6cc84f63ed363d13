package cpu

import "github.com/planc-dev/planc/runtime/cpu/elem"

// lane is the number of columns that sums over rows process at once: their sums stay in the first-level
// cache, and their part of a row is some cache lines.
const lane = 64

func sumRows[F Float](out, x []F, rows, cols int, acc bool) {
	for j0 := 0; j0 < cols; j0 += lane {
		var sum [lane]float64
		for i := range rows {
			for j, v := range x[i*cols+j0 : i*cols+min(j0+lane, cols)] {
				sum[j&(lane-1)] += float64(v)
			}
		}
		put(out[j0:min(j0+lane, cols)], &sum, acc)
	}
}

// put writes sums, or adds them.
func put[F Float](out []F, sum *[lane]float64, acc bool) {
	for j := range out {
		if s := F(sum[j]); acc {
			out[j] += s
		} else {
			out[j] = s
		}
	}
}

func sumCols[F Float](out, x []F, rows, cols int, acc bool) {
	for i := range rows {
		if s := F(elem.Total(x[i*cols:][:cols])); acc {
			out[i] += s
		} else {
			out[i] = s
		}
	}
}

func sumSquares[F Float](x []F) float64 { return elem.Dot(x, x) }
