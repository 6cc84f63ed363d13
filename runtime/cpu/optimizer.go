package cpu

import (
	"math"
)

// AdamStep holds the parameters of one step of AdamW or Adam.
type AdamStep struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Scale                              float64 // factor of the gradient for clipping; 1 for none
	T                                  int     // number of this step, from 1
}

// SGDStep holds the parameters of one step of SGD.
type SGDStep struct {
	LR, Momentum, WeightDecay float64
	Scale                     float64 // factor of the gradient for clipping; 1 for none
}

func adamW[F Float](p, g, m, v []F, o AdamStep) {
	adamStep(p, g, m, v, o, 1-o.LR*o.WeightDecay, 0)
}

func adam[F Float](p, g, m, v []F, o AdamStep) { adamStep(p, g, m, v, o, 1, o.WeightDecay) }

// adamStep computes AdamW with p *= keep for the weight decay, and decay*p added to the gradient.
func adamStep[F Float](p, g, m, v []F, o AdamStep, keep, decay float64) {
	m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
	scale, shrink, wd, eps := F(o.Scale), F(keep), F(decay), F(o.Eps)
	b1, c1, b2, c2 := F(o.Beta1), F(1-o.Beta1), F(o.Beta2), F(1-o.Beta2)
	step := F(o.LR / (1 - math.Pow(o.Beta1, float64(o.T))))
	root := F(1 / math.Sqrt(1-math.Pow(o.Beta2, float64(o.T))))
	for i, x := range p {
		d := F(g[i]*scale) + F(wd*x)
		mi := F(b1*m[i]) + F(c1*d)
		vi := F(b2*v[i]) + F(c2*F(d*d))
		m[i], v[i] = mi, vi
		p[i] = F(x*shrink) - F(step*mi)/(F(F(math.Sqrt(float64(vi)))*root)+eps)
	}
}

func sgd[F Float](p, g, m []F, o SGDStep) {
	g = g[:len(p)]
	lr, scale, wd, mu := F(o.LR), F(o.Scale), F(o.WeightDecay), F(o.Momentum)
	if m == nil {
		for i, x := range p {
			p[i] = x - F(lr*(F(g[i]*scale)+F(wd*x)))
		}
		return
	}
	m = m[:len(p)]
	for i, x := range p {
		d := F(mu*m[i]) + (F(g[i]*scale) + F(wd*x))
		m[i] = d
		p[i] = x - F(lr*d)
	}
}
