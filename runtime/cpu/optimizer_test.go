package cpu

import (
	"math"
	"testing"
)

func TestAdam(t *testing.T) { both(t, testAdam[float32], testAdam[float64]) }

func testAdam[F Float](t *testing.T, tol float64) {
	for _, decoupled := range []bool{true, false} {
		const n = 13
		p, m, v := draw[F](1, n), make([]F, n), make([]F, n)
		wp, wm, wv := wide(p), make([]float64, n), make([]float64, n)
		for step := 1; step <= 4; step++ {
			o := AdamStep{LR: 0.02, Beta1: 0.9, Beta2: 0.95, Eps: 1e-4, WeightDecay: 0.1, Scale: 0.7, T: step}
			g := draw[F](int64(10+step), n)
			if decoupled {
				Table[F]().AdamW(p, g, m, v, o)
			} else {
				Table[F]().Adam(p, g, m, v, o)
			}
			for i := range wp {
				d := float64(g[i]) * o.Scale
				if decoupled {
					wp[i] *= 1 - o.LR*o.WeightDecay
				} else {
					d += o.WeightDecay * wp[i]
				}
				wm[i] = o.Beta1*wm[i] + (1-o.Beta1)*d
				wv[i] = o.Beta2*wv[i] + (1-o.Beta2)*d*d
				mh := wm[i] / (1 - math.Pow(o.Beta1, float64(step)))
				vh := wv[i] / (1 - math.Pow(o.Beta2, float64(step)))
				wp[i] -= o.LR * mh / (math.Sqrt(vh) + o.Eps)
			}
			near(t, "m", m, wm, tol)
			near(t, "v", v, wv, tol)
			near(t, "p", p, wp, tol)
		}
	}
	Table[F]().AdamW(nil, nil, nil, nil, AdamStep{T: 1})
}

func TestSGD(t *testing.T) { both(t, testSGD[float32], testSGD[float64]) }

func testSGD[F Float](t *testing.T, tol float64) {
	for _, mu := range []float64{0, 0.9} {
		const n = 11
		var m []F
		if mu > 0 {
			m = make([]F, n)
		}
		p := draw[F](1, n)
		wp, wm := wide(p), make([]float64, n)
		for step := range 3 {
			g := draw[F](int64(10+step), n)
			Table[F]().SGD(p, g, m, SGDStep{LR: 0.1, Momentum: mu, WeightDecay: 0.01, Scale: 0.5})
			for i := range wp {
				wm[i] = mu*wm[i] + 0.5*float64(g[i]) + 0.01*wp[i]
				wp[i] -= 0.1 * wm[i]
			}
			near(t, name("sgd ", mu), p, wp, tol)
		}
	}
}
