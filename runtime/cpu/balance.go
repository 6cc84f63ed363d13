package cpu

// BalanceShape describes the tokens over which experts are balanced: Groups runs of Tokens rows. Scale
// belongs to the whole group, of which a rank may have a part.
type BalanceShape struct {
	Groups, Tokens, Experts int
	Sigmoid                 bool // a token's scores are its sigmoids divided by their sum; else softmax
	Scale                   float64
}

// LimitChoices computes
//
//	for each sequence, each expert { the first most choices of it keep their expert e, others become -1-e }
//
// with choices in the order of tokens, and those of a token from the best to the worst.
func LimitChoices(counts, index []int32, sequences, choices, experts, capacity int) {
	var fixed [maxExperts]int
	count := fixed[:]
	if experts > maxExperts {
		count = make([]int, experts)
	}
	for s := range sequences {
		clear(count)
		for i, e := range index[s*choices:][:choices] {
			count[e]++
			if count[e] > capacity {
				e = -1 - e
			}
			counts[s*choices+i] = e
		}
	}
}

func tally[F Float](n []F, index []int32, groups, choices, experts int) {
	clear(n[:groups*experts])
	for g := range groups {
		row := n[g*experts:][:experts]
		for _, e := range index[g*choices:][:choices] {
			row[e]++
		}
	}
}

func balance[F Float](y, x, n []F, s BalanceShape) {
	var fixed [maxExperts]float64
	score := s.room(fixed[:])
	for g := range s.Groups {
		sum := 0.0
		for i := range s.Tokens {
			scores(score, x[(g*s.Tokens+i)*s.Experts:][:s.Experts], s.Sigmoid)
			sum += meanOf(score, n[g*s.Experts:])
		}
		y[g] = F(s.Scale * sum)
	}
}

func balanceGrad[F Float](dx, dy, x, n []F, s BalanceShape) {
	var fixed [maxExperts]float64
	score := s.room(fixed[:])
	for g := range s.Groups {
		row, factor := n[g*s.Experts:][:s.Experts], s.Scale*float64(dy[g])
		for i := range s.Tokens {
			at := (g*s.Tokens + i) * s.Experts
			scores(score, x[at:][:s.Experts], s.Sigmoid)
			mean, sum := meanOf(score, row), 0.0
			for _, p := range score {
				sum += p
			}
			for e, p := range score {
				d := factor * (p / sum) * (float64(row[e]) - mean)
				if s.Sigmoid {
					d *= 1 - p
				}
				dx[at+e] = F(d)
			}
		}
	}
}

// meanOf returns the mean of n, weighted by the scores.
func meanOf[F Float](score []float64, n []F) float64 {
	mean, sum := 0.0, 0.0
	for e, p := range score {
		mean += float64(p * float64(n[e]))
		sum += p
	}
	return mean / sum
}

// room returns memory for a token's scores.
func (s *BalanceShape) room(fixed []float64) []float64 {
	if s.Experts > maxExperts {
		return make([]float64, s.Experts)
	}
	return fixed[:s.Experts]
}
