package team

import "testing"

// The owner takes the parts of its range from the first on, others from the last on, each part once.
func TestPartRange(t *testing.T) {
	for ends := range 1 << 6 { // bit i: the first part is taken in step i
		var r partRange
		r.set(7, 3, 9)
		first, last := 3, 8
		for i := range 6 {
			own, want := ends>>i&1 > 0, last
			if own {
				want, first = first, first+1
			} else {
				last--
			}
			if !r.left() {
				t.Fatalf("%06b: nothing is left at turn %d", ends, i)
			}
			if part, ok := r.take(own); !ok || part != want {
				t.Fatalf("%06b: turn %d takes part %d, %v; want %d", ends, i, part, ok, want)
			}
		}
		if part, ok := r.take(true); ok || r.left() {
			t.Fatalf("%06b: part %d was left", ends, part)
		}
	}
	var r partRange
	r.set(1<<32-1, MaxParts-1, MaxParts)
	if part, ok := r.take(false); !ok || part != MaxParts-1 || r.state.Load()>>32 != 1<<32-1 {
		t.Errorf("the last part of most: %d, %v, number %d", part, ok, r.state.Load()>>32)
	}
}

// In jobs with equal numbers of parts, each thread has the same parts: rows that are in its core's caches.
func TestThreadsHaveTheirParts(t *testing.T) {
	for _, z := range []struct{ threads, parts int }{{2, 2}, {2, 7}, {3, 64}, {5, 3}, {16, 2}, {4, MaxParts}} {
		end := 0
		for i := range z.threads {
			first, next := rangeOf(i, z.threads, z.parts)
			if first != end || next < first || next-first > (z.parts+z.threads-1)/z.threads {
				t.Errorf("thread %d of %d has parts %d to %d of %d, after %d", i, z.threads, first, next-1,
					z.parts, end)
			}
			end = next
		}
		if first, next := rangeOf(0, z.threads, z.parts); first == next {
			t.Errorf("the caller has none of %d parts", z.parts)
		}
		if end != z.parts {
			t.Errorf("%d threads have %d of %d parts", z.threads, end, z.parts)
		}
	}
}
