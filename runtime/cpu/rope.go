package cpu

import "math"

// RopeScale changes the frequencies of RoPE, to reach further than the model was first trained for. Kind
// is "" for no change, "linear" or "llama3" (Hugging Face's names and formulas); the last three fields
// are llama3's.
type RopeScale struct {
	Kind              string
	Factor            float64 // by which the (low) frequencies are divided
	LowFreq, HighFreq float64 // waves per OriginalLen below which all, above which none of Factor applies
	OriginalLen       int     // positions of the first training
}

// freq is the frequency that stands in for f.
func (s RopeScale) freq(f float64) float64 {
	switch s.Kind {
	case "":
		return f
	case "linear":
		return f / s.Factor
	case "llama3":
		waves := float64(s.OriginalLen) * f / (2 * math.Pi)
		switch {
		case waves < s.LowFreq:
			return f / s.Factor
		case waves > s.HighFreq:
			return f
		}
		smooth := (waves - s.LowFreq) / (s.HighFreq - s.LowFreq)
		return float64((1-smooth)*f/s.Factor) + float64(smooth*f)
	}
	panic("cpu: no RoPE scaling " + s.Kind)
}

const ropePairs = 64 // pairs of elements rotated at a time

func rope[F Float](y, x []F, batch, seq, heads, dim, pos0 int, theta float64, scale RopeScale, inverse bool) {
	half := dim / 2
	for j0 := 0; j0 < half; j0 += ropePairs {
		n := min(ropePairs, half-j0)
		var freq [ropePairs]float64
		for j := range n {
			freq[j] = scale.freq(math.Pow(theta, -2*float64(j0+j)/float64(dim)))
		}
		for s := range seq {
			var cos, sin [ropePairs]F
			for j := range n {
				b, a := math.Sincos(float64(float64(pos0+s) * freq[j]))
				if inverse {
					b = -b
				}
				cos[j], sin[j] = F(a), F(b)
			}
			for b := range batch {
				for h := range heads {
					at := ((b*seq+s)*heads+h)*dim + j0
					rotate(y[at:][:half+n], x[at:][:half+n], cos[:n], sin[:n], half)
				}
			}
		}
	}
}

// rotate turns the pairs (x[j], x[j+half]).
func rotate[F Float](y, x, cos, sin []F, half int) {
	n := len(cos)
	sin = sin[:n]
	x0, x1, y0, y1 := x[:n], x[half:][:n], y[:n], y[half:][:n]
	for j, c := range cos {
		a, b, s := x0[j], x1[j], sin[j]
		y0[j] = F(a*c) - F(b*s)
		y1[j] = F(b*c) + F(a*s)
	}
}
