package cpu

// Where places a rank's part of a dim in the whole: local index i is At+i there, from i = Half on, where that is not 0,
// Then+i-Half. Then is behind the first half, so that the order is kept.
type Where struct{ At, Half, Then int }

// Of is where local index i is.
func (s Where) Of(i int) int {
	if s.Half > 0 && i >= s.Half {
		return s.Then + i - s.Half
	}
	return s.At + i
}

// below is how many of n local indices are below p in the whole.
func (s Where) below(p, n int) int {
	if s.Half == 0 {
		return max(0, min(p-s.At, n))
	}
	return max(0, min(p-s.At, s.Half)) + max(0, min(p-s.Then, n-s.Half))
}

// run is how many of the n local indices from i on follow each other in the whole.
func (s Where) run(i, n int) int {
	if i < s.Half {
		return min(n, s.Half-i)
	}
	return n
}
