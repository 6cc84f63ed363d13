package attention

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// Slope returns ALiBi's slope of local head (h, g), as Hugging Face's Bloom computes it. With n = 2^k
// heads, head i (from 1) has 2^(-8i/n). Further heads have every second slope of 2n heads.
func (s *Shape) Slope(h, g int) float64 {
	if !s.Alibi {
		return 0
	}
	heads, i := s.HeadsAll*s.GroupAll, (s.Head0+h)*s.GroupAll+s.Group0+g
	n := 1
	for 2*n <= heads {
		n *= 2
	}
	if i < n {
		return math.Exp2(-8 * float64(i+1) / float64(n))
	}
	return math.Exp2(-8 * float64(2*(i-n)+1) / float64(2*n))
}

// capScores computes x = cap*tanh(x/cap), and the derivative in slope unless that is nil.
func capScores[F elem.Float](x, slope []F, cap F) {
	if k, row := loops32(x); k != nil {
		k.Softcap(row, row, float32(cap), 1/float32(cap))
		for j := range min(len(x), len(slope)) {
			t := x[j] / cap
			slope[j] = 1 - F(t*t)
		}
		return
	}
	for j, s := range x {
		t := elem.Tanh(s / cap)
		x[j] = F(cap * t)
		if slope != nil {
			slope[j] = 1 - F(t*t)
		}
	}
}

// scores turns dot products of query i with the keys from j on into scores, up to a factor, which it
// returns: the scale if the scores are only scaled. slope is as in capScores.
func (hd *head[F]) scores(x, slope []F, i, j int) F {
	if hd.Softcap == 0 && hd.slope == 0 {
		return F(hd.Scale)
	}
	scaleTo(x, x, F(hd.Scale))
	if hd.Softcap > 0 {
		capScores(x, slope, F(hd.Softcap))
	}
	hd.bias(x, i, j)
	return 1
}

// bias adds ALiBi's bias to the scores of query i and the keys from j on.
func (hd *head[F]) bias(x []F, i, j int) {
	if hd.slope == 0 {
		return
	}
	back := hd.Values().Of(j) - hd.Queries().Of(i)
	for k := range x {
		x[k] += F(hd.slope * float64(back+k))
	}
}
