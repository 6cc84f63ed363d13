package runtime

import (
	"slices"
	"testing"
)

// A join's parts are what was joined, the second as often as it was taken.
func TestJoinAndPart(t *testing.T) {
	a, b := []int{1, 2, 3, 4, 5, 6, 7, 8}, []int{-1, -2, -3, -4, -5, -6} // [2, 2, 2] and [2, 3]
	y := make([]int, 20)
	Concat(y, a, b, 2, 2, 2, 3)
	if want := []int{1, 2, -1, -2, -3, 3, 4, -1, -2, -3, 5, 6, -4, -5, -6, 7, 8, -4, -5, -6}; !slices.Equal(y, want) {
		t.Errorf("joined are %v, want %v", y, want)
	}
	first, second := make([]int, 8), make([]int, 12)
	SliceFrom(first, y, 4, 5, 0)
	SliceFrom(second, y, 4, 5, 2)
	if want := []int{-1, -2, -3, -1, -2, -3, -4, -5, -6, -4, -5, -6}; !slices.Equal(first, a) ||
		!slices.Equal(second, want) {
		t.Errorf("parts are %v and %v, want %v and %v", first, second, a, want)
	}
}
