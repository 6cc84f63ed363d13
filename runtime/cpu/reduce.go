package cpu

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
		if s := F(total(x[i*cols:][:cols])); acc {
			out[i] += s
		} else {
			out[i] = s
		}
	}
}

// total returns the sum of x: of every fourth element, then of the four sums.
func total[F Float](x []F) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		s0 += float64(x[0])
		s1 += float64(x[1])
		s2 += float64(x[2])
		s3 += float64(x[3])
	}
	for _, v := range x {
		s0 += float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

func sumSquares[F Float](x []F) float64 { return dot(x, x) }

// dot returns the sum of x[i]*y[i], in the order of total.
func dot[F Float](x, y []F) float64 {
	var s0, s1, s2, s3 float64
	y = y[:len(x)]
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		s0 += float64(float64(x[0]) * float64(y[0]))
		s1 += float64(float64(x[1]) * float64(y[1]))
		s2 += float64(float64(x[2]) * float64(y[2]))
		s3 += float64(float64(x[3]) * float64(y[3]))
	}
	for i, v := range x {
		s0 += float64(float64(v) * float64(y[i]))
	}
	return (s0 + s1) + (s2 + s3)
}

func add[F Float](dst, src []F) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}
