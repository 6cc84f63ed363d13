package cpu

// PlaceShape says how tokens lie at the experts: each expert has Places of them, in the order of the tokens and of their
// choices. A round has the next so many of each expert; the first is number 0. A choice whose expert is negative has no place.
type PlaceShape struct {
	Tokens, Choices, Experts, Places, Width, Round int
}

// each calls do for each choice that has a place in this round, with the index of the choice and of the place.
func (s *PlaceShape) each(index []int32, do func(choice, place int)) {
	var fixed [maxExperts]int
	count := fixed[:]
	if s.Experts > maxExperts {
		count = make([]int, s.Experts)
	}
	first := s.Round * s.Places
	for i, e := range index[:s.Tokens*s.Choices] {
		if e < 0 {
			continue
		}
		at := count[e] - first
		count[e]++
		if uint(at) < uint(s.Places) {
			do(i, int(e)*s.Places+at)
		}
	}
}

// Rounds is how many rounds the choices need with so many places for each expert; at least one, in which every rank
// takes part.
func Rounds(index []int32, experts, places int) int {
	var fixed [maxExperts]int
	count := fixed[:]
	if experts > maxExperts {
		count = make([]int, experts)
	}
	most := 1
	for _, e := range index {
		if e < 0 {
			continue
		}
		count[e]++
		most = max(most, count[e])
	}
	return (most + places - 1) / places
}

func dispatch[F Float](y, x []F, index []int32, s PlaceShape) {
	clear(y)
	s.each(index, func(choice, place int) {
		copy(y[place*s.Width:][:s.Width], x[choice/s.Choices*s.Width:][:s.Width])
	})
}

func combine[F Float](y, x []F, index []int32, s PlaceShape) {
	if s.Round == 0 {
		clear(y)
	}
	s.each(index, func(choice, place int) {
		add(y[choice/s.Choices*s.Width:][:s.Width], x[place*s.Width:][:s.Width])
	})
}

func deal[F Float](y, w []F, index []int32, s PlaceShape) {
	clear(y)
	s.each(index, func(choice, place int) { y[place] = w[choice] })
}

func collect[F Float](w, y []F, index []int32, s PlaceShape) {
	if s.Round == 0 {
		clear(w)
	}
	s.each(index, func(choice, place int) { w[choice] = y[place] })
}

// MatMulEach is
//
//	for g := range groups { MatMul(c[g], a[g], b[g], m, n, k, ta, tb, acc) }
func (t *Kernels[F]) MatMulEach(c, a, b []F, groups, m, n, k int, ta, tb, acc bool) {
	for g := range groups {
		t.MatMul(c[g*m*n:][:m*n], a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, ta, tb, acc)
	}
}
