package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// moments returns the mean of a row and the inverse of its standard deviation.
func moments[F Float](x []F, eps float64) (mean, rstd float64) {
	n := float64(len(x))
	mean = elem.Total(x) / n
	var s0, s1 float64
	for ; len(x) >= 2; x = x[2:] {
		a, b := float64(x[0])-mean, float64(x[1])-mean
		s0 += float64(a * a)
		s1 += float64(b * b)
	}
	for _, v := range x {
		a := float64(v) - mean
		s0 += float64(a * a)
	}
	return mean, 1 / math.Sqrt((s0+s1)/n+eps)
}

// rms returns 0 as the mean, which is not subtracted, and the inverse of a row's root mean square.
func rms[F Float](x []F, eps float64) (mean, rstd float64) {
	return 0, 1 / math.Sqrt(elem.Dot(x, x)/float64(len(x))+eps)
}

func layerNorm[F Float](y, x, gain, bias []F, rows, cols int, eps float64) {
	for i := range rows {
		yi, xi := y[i*cols:][:cols], x[i*cols:][:cols]
		mean, rstd := moments(xi, eps)
		scaleRow(yi, xi, gain, 0, mean, rstd)
		if bias != nil {
			elem.Add(yi, bias)
		}
	}
}

func rmsNorm[F Float](y, x, gain []F, rows, cols int, eps float64, unit bool) {
	for i := range rows {
		xi := x[i*cols:][:cols]
		mean, r := rms(xi, eps)
		scaleRow(y[i*cols:][:cols], xi, gain, base[F](unit), mean, r)
	}
}

// base returns what a gain is added to: 1 if unit, else 0.
func base[F Float](unit bool) F {
	if unit {
		return 1
	}
	return 0
}

// scaleRow computes y = (x-mean)*rstd * (base+gain).
func scaleRow[F Float](y, x, gain []F, base F, mean, rstd float64) {
	m, r := F(mean), F(rstd)
	y, gain = y[:len(x)], gain[:len(x)]
	for j, v := range x {
		y[j] = F(F((v-m)*r) * (base + gain[j]))
	}
}

func layerNormDX[F Float](dx, dy, x, gain []F, rows, cols int, eps float64) {
	for i := range rows {
		at, end := i*cols, (i+1)*cols
		mean, rstd := moments(x[at:end], eps)
		normGrad(dx[at:end], dy[at:end], x[at:end], gain, 0, mean, rstd, true)
	}
}

func rmsNormDX[F Float](dx, dy, x, gain []F, rows, cols int, eps float64, unit bool) {
	for i := range rows {
		at, end := i*cols, (i+1)*cols
		mean, r := rms(x[at:end], eps)
		normGrad(dx[at:end], dy[at:end], x[at:end], gain, base[F](unit), mean, r, false)
	}
}

// normGrad computes one row of LayerNormDX, or of RMSNormDX, whose mean is not subtracted and has no
// gradient.
func normGrad[F Float](dx, dy, x, gain []F, base F, mean, rstd float64, centred bool) {
	n := len(x)
	dx, dy, gain = dx[:n], dy[:n], gain[:n]
	m, r := F(mean), F(rstd)
	var sum, along float64
	for j, v := range x {
		g := F(dy[j] * (base + gain[j]))
		sum += float64(g)
		along += float64(float64(g) * float64(F((v-m)*r)))
	}
	if !centred {
		sum = 0
	}
	a, b := F(sum/float64(n)), F(along/float64(n))
	for j, v := range x {
		g := F(dy[j] * (base + gain[j]))
		dx[j] = F(r * (g - a - F(F((v-m)*r)*b)))
	}
}

func layerNormDGain[F Float](dgain, dy, x []F, rows, cols int, eps float64, acc bool) {
	gainGrad(dgain, dy, x, rows, cols, eps, acc, moments[F])
}

func rmsNormDGain[F Float](dgain, dy, x []F, rows, cols int, eps float64, acc bool) {
	gainGrad(dgain, dy, x, rows, cols, eps, acc, rms[F])
}

// gainGrad computes LayerNormDGain or RMSNormDGain, 64 rows at a time, whose moments are computed once.
func gainGrad[F Float](dgain, dy, x []F, rows, cols int, eps float64, acc bool,
	sums func([]F, float64) (float64, float64)) {
	if rows == 0 && !acc {
		clear(dgain[:cols])
	}
	var mean, rstd [64]F
	for i0 := 0; i0 < rows; i0 += len(mean) {
		n := min(len(mean), rows-i0)
		for i := range n {
			m, r := sums(x[(i0+i)*cols:][:cols], eps)
			mean[i], rstd[i] = F(m), F(r)
		}
		for j0 := 0; j0 < cols; j0 += lane {
			j1 := min(j0+lane, cols)
			var sum [lane]float64
			for i := range n {
				at := (i0 + i) * cols
				xi, dyi := x[at+j0:at+j1], dy[at+j0:at+j1]
				addProducts(&sum, dyi, xi, mean[i], rstd[i])
			}
			put(dgain[j0:j1], &sum, acc || i0 > 0)
		}
	}
}

// addProducts computes sum += dy * (x-mean)*rstd.
func addProducts[F Float](sum *[lane]float64, dy, x []F, mean, rstd F) {
	dy = dy[:len(x)]
	for j, v := range x {
		sum[j&(lane-1)] += float64(float64(dy[j]) * float64(F((v-mean)*rstd)))
	}
}
