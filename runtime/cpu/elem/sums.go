package elem

import "math"

// Total returns the sum of x: of every fourth element, then of the four sums.
func Total[F Float](x []F) float64 {
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

// Dot returns the sum of x[i]*y[i], in the order of total.
func Dot[F Float](x, y []F) float64 {
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

func Add[F Float](dst, src []F) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}

// Largest returns the maximum of x: -Inf if it is empty, and NaN if there is one.
func Largest[F Float](x []F) F {
	top := F(math.Inf(-1))
	for _, v := range x {
		if v > top || v != v {
			top = v
		}
	}
	return top
}
