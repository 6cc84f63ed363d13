package elem

// Where describes the position of a rank's part of a dim in the whole: local index i is At+i or, if Half is
// not 0, from i = Half on, Then+i-Half. Then is after the first half, so that the order is kept.
type Where struct{ At, Half, Then int }

// Of returns the global index of local index i.
func (s Where) Of(i int) int {
	if s.Half > 0 && i >= s.Half {
		return s.Then + i - s.Half
	}
	return s.At + i
}

// Below returns how many of n local indices are below p in the whole.
func (s Where) Below(p, n int) int {
	if s.Half == 0 {
		return max(0, min(p-s.At, n))
	}
	return max(0, min(p-s.At, s.Half)) + max(0, min(p-s.Then, n-s.Half))
}

// Consecutive returns how many of the n local indices from i on are consecutive in the whole.
func (s Where) Consecutive(i, n int) int {
	if i < s.Half {
		return min(n, s.Half-i)
	}
	return n
}
