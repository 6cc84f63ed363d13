package comm

import (
	"fmt"
	"slices"
	"testing"
)

// Each member gets what the member so many before had; all the way round it is its own again.
func TestShift(t *testing.T) {
	mesh := Mesh{{"x", 2}, {"cp", 3}}
	for _, by := range []int{0, 1, 2, -1, 4} {
		w := NewWorld(mesh, 0)
		must(t, each(t, w, mesh, []string{"cp"}, func(r int, g *Group) error {
			values := func(i int) []float64 { return random[float64](70, uint64(10*g.Ranks()[(i%3+3)%3]+1)) }
			got := make([]float64, 70)
			if err := Shift(g, got, values(g.Index()), by); err != nil {
				return err
			}
			if !slices.Equal(got, values(g.Index()-by)) {
				return fmt.Errorf("shift by %d: rank %d has not what the member %d before it had", by, r, by)
			}
			return nil
		}))
	}
}
