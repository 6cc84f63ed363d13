package comm

import (
	"fmt"
	"slices"
	"testing"
)

// An all-to-all is a slice of what an all-gather makes whole; back again it is undone.
func TestAllToAll(t *testing.T) {
	mesh := Mesh{{"x", 2}, {"cp", 3}}
	for _, shape := range []AllToAllShape{{Outer: 2, First: 2, Middle: 1, Second: 2, Inner: 5},
		{Outer: 1, First: 3, Middle: 4,
			Second: 1, Inner: 1}, {Outer: 3, First: 1, Middle: 2, Second: 2, Inner: 2}} {
		w := NewWorld(mesh, 0)
		must(t, each(t, w, mesh, []string{"cp"}, func(r int, g *Group) error {
			src := random[float64](shape.elems(3), uint64(r))
			width := shape.Second * shape.Inner
			whole := make([]float64, len(src)*3)
			rows := shape.First * shape.Middle * width * 3 // of one outer index and member
			if err := AllGather(g, whole, src, shape.Outer, rows, 3*rows); err != nil {
				return err
			}
			want := make([]float64, len(src))
			Slice(g, want, whole, shape.Outer*3*shape.First*shape.Middle, width)
			got, back := make([]float64, len(src)), make([]float64, len(src))
			if err := AllToAll(g, got, src, shape); err != nil {
				return err
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%+v: rank %d is no slice of what is gathered", shape, r)
			}
			undo := shape
			undo.Back = true
			if err := AllToAll(g, back, got, undo); err != nil {
				return err
			}
			if !slices.Equal(back, src) {
				return fmt.Errorf("%+v: rank %d does not get back what it had", shape, r)
			}
			return nil
		}))
	}
}

func TestZigzag(t *testing.T) {
	var order []int
	for i := range 3 {
		Parts(i, 3, 12, 3, func(at, n int) {
			for k := range n {
				order = append(order, at+k)
			}
		})
	}
	if want := []int{0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7}; !slices.Equal(order, want) {
		t.Fatalf("the zigzag order is %v, want %v", order, want)
	}
	mesh := Mesh{{"tp", 2}, {"cp", 3}}
	const outer, inner, total = 2, 6, 36 // 12 positions of 3 elements over 6 ranks: a part of 2 positions
	w := NewWorld(mesh, 0)
	must(t, each(t, w, mesh, []string{"tp", "cp"}, func(r int, g *Group) error {
		whole := random[float64](outer*total, uint64(r))
		sum := slices.Clone(whole)
		if err := AllReduce(g, sum, Sum); err != nil {
			return err
		}
		part, mine, joined := make([]float64, outer*inner), make([]float64, outer*inner), make([]float64, outer*total)
		if err := ReduceScatterZigzag(g, part, whole, outer, inner, 3); err != nil {
			return err
		}
		SliceZigzag(g, mine, sum, outer, inner, 3)
		if !slices.Equal(part, mine) {
			return fmt.Errorf("rank %d: reduce-scatter is not the slice of all-reduce", r)
		}
		for j := range mine {
			if p := order[g.Index()*2+j%inner/3]; mine[j] != sum[j/inner*total+p*3+j%3] {
				return fmt.Errorf("rank %d has not position %d at %d", r, p, j)
			}
		}
		if err := AllGatherZigzag(g, joined, part, outer, inner, total, 3); err != nil {
			return err
		}
		if !slices.Equal(joined, sum) {
			return fmt.Errorf("rank %d: all-gather does not undo the slice", r)
		}
		return nil
	}))
}
