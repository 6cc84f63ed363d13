package space

import (
	"cmp"
	"slices"
	"strconv"
)

// Ints returns the pinned values of a key, ascending, or all if it is free.
func (p *Problem) Ints(key string, all []int) []int {
	texts, pinned := p.Pins[key]
	if !pinned {
		return all
	}
	var vs []int
	for _, t := range texts {
		if v, err := strconv.Atoi(t); err == nil {
			vs = append(vs, v)
		}
	}
	slices.Sort(vs)
	return slices.Compact(vs)
}

// Bools returns the values that a key may have.
func (p *Problem) Bools(key string) []bool {
	var vs []bool
	for _, v := range []bool{false, true} {
		if p.Pins.Allows(key, strconv.FormatBool(v)) {
			vs = append(vs, v)
		}
	}
	return vs
}

// Divisors returns the divisors of n, ascending.
func Divisors(n int) []int {
	var ds []int
	for i := 1; i <= n/i; i++ {
		if n%i == 0 {
			ds = append(ds, i)
			if i != n/i {
				ds = append(ds, n/i)
			}
		}
	}
	slices.SortFunc(ds, cmp.Compare[int])
	return ds
}
