package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// RouteShape describes how a router chooses experts.
type RouteShape struct {
	Rows, Experts, Choices int
	Sigmoid                bool    // scores are 1/(1+exp(-x)) of each expert; else softmax over the experts
	Share                  bool    // weights are divided by the sum of the chosen scores plus Eps
	Scale, Eps             float64 // factor of weights; term of the sum
	// number of equal groups of experts, and of groups from which experts are chosen; 0: all
	Groups, Best int

	// Chosen is called with each row's choice, and may change it before the weights are computed. Only tests
	// set it.
	Chosen func(row int, experts []int32)
}

// maxExperts is the number of experts up to which a router allocates no memory.
const maxExperts = 512

func route[F Float](w []F, index []int32, x, bias []F, s RouteShape) {
	var fixed [2 * maxExperts]float64
	work := fixed[:]
	if s.Experts > maxExperts {
		work = make([]float64, 2*s.Experts)
	}
	score, order := work[:s.Experts], work[s.Experts:][:s.Experts]
	for i := range s.Rows {
		scores(score, x[i*s.Experts:][:s.Experts], s.Sigmoid)
		copy(order, score)
		for e, b := range bias {
			order[e] += float64(b)
		}
		s.bestGroups(order)
		chosen, wi := index[i*s.Choices:][:s.Choices], w[i*s.Choices:][:s.Choices]
		for c := range chosen {
			e := argMax(order)
			chosen[c], order[e] = int32(e), math.Inf(-1)
		}
		if s.Chosen != nil {
			s.Chosen(i, chosen)
		}
		sum := s.Eps
		for _, e := range chosen {
			sum += score[e]
		}
		for c, e := range chosen {
			y := s.Scale * score[e]
			if s.Share {
				y /= sum
			}
			wi[c] = F(y)
		}
	}
}

// scores computes the router's scores from its outputs.
func scores[F Float](score []float64, x []F, sigmoid bool) {
	if sigmoid {
		for e, v := range x {
			score[e] = 1 / (1 + elem.Exp64(-float64(v)))
		}
		return
	}
	top, sum := float64(elem.Largest(x)), 0.0
	for e, v := range x {
		score[e] = elem.Exp64(float64(v) - top)
		sum += score[e]
	}
	for e := range score {
		score[e] /= sum
	}
}

// bestGroups restricts the choice to the experts of the best groups. The score of a group is its best
// expert's or, with sigmoid scores, the sum of its best two.
func (s *RouteShape) bestGroups(order []float64) {
	if s.Groups <= 1 {
		return
	}
	var good [maxExperts]float64
	width := s.Experts / s.Groups
	for g := range s.Groups {
		first, second := math.Inf(-1), math.Inf(-1)
		for _, v := range order[g*width:][:width] {
			if v > first {
				first, second = v, first
			} else if v > second {
				second = v
			}
		}
		good[g] = first
		if s.Sigmoid {
			good[g] += second
		}
	}
	var keep [maxExperts]bool
	for range s.Best {
		g := argMax(good[:s.Groups])
		keep[g], good[g] = true, math.Inf(-1)
	}
	for e := range order {
		if !keep[e/width] {
			order[e] = math.Inf(-1)
		}
	}
}

// argMax returns the first index of the maximum.
func argMax(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

func routeGrad[F Float](dx, dw, x, w []F, index []int32, s RouteShape) {
	var fixed [2 * maxExperts]float64
	work := fixed[:]
	if s.Experts > maxExperts {
		work = make([]float64, 2*s.Experts)
	}
	score, ds := work[:s.Experts], work[s.Experts:][:s.Experts]
	for i := range s.Rows {
		scores(score, x[i*s.Experts:][:s.Experts], s.Sigmoid)
		clear(ds)
		chosen, dwi, wi := index[i*s.Choices:][:s.Choices], dw[i*s.Choices:][:s.Choices], w[i*s.Choices:][:s.Choices]
		sum, dot := s.Eps, 0.0
		for c, e := range chosen {
			sum += score[e]
			dot += float64(float64(dwi[c]) * float64(wi[c]))
		}
		for c, e := range chosen {
			ds[e] = s.Scale * float64(dwi[c])
			if s.Share {
				ds[e] = (ds[e] - dot) / sum
			}
		}
		out := dx[i*s.Experts:][:s.Experts]
		if s.Sigmoid {
			for e, p := range score {
				out[e] = F(ds[e] * p * (1 - p))
			}
			continue
		}
		mean := 0.0
		for _, e := range chosen {
			mean += float64(ds[e] * score[e])
		}
		for e, p := range score {
			out[e] = F(p * (ds[e] - mean))
		}
	}
}
