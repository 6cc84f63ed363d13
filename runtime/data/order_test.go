package data

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/runtime/rng"
)

func TestPermutationIsABijection(t *testing.T) {
	sizes := []uint64{997, 1024, 1025, 4096, 65537, 100003}
	for n := uint64(1); n <= 300; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for key := range uint64(3) {
			p := newPermutation(n, key)
			seen := make([]bool, n)
			for i := range n {
				j := p.at(i)
				if j >= n || seen[j] {
					t.Fatalf("n %d key %d: at(%d) is %d, which is taken or too large", n, key, i, j)
				}
				seen[j] = true
			}
		}
	}
}

// Of a large set we cannot visit all; the inverse shows that no two places collide.
func TestPermutationOfLargeSets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := r.Uint64N(1<<50) + 1000
		p := newPermutation(n, r.Uint64())
		for range 20 {
			i := r.Uint64N(n)
			j := p.at(i)
			back := j
			for back = p.inverse(back); back >= n; back = p.inverse(back) {
			}
			if j >= n || back != i {
				t.Fatalf("n %d: at(%d) is %d, and back %d", n, i, j, back)
			}
		}
	}
}

// inverse undoes network.
func (p *permutation) inverse(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	l, r := x>>p.half, x&mask
	for k := rounds - 1; k >= 0; k-- {
		l, r = r^rng.Bits(p.keys[k], l)&mask, l
	}
	return l<<p.half | r
}

// Every place gets every sample equally often over keys, and neighbours do not stay neighbours.
func TestPermutationMixes(t *testing.T) {
	const n, keys = 10, 20000
	var count [n][n]int
	together := 0
	for key := range uint64(keys) {
		p := newPermutation(n, rng.Key(key))
		for i := range uint64(n) {
			count[i][p.at(i)]++
			if i > 0 && p.at(i) == p.at(i-1)+1 {
				together++
			}
		}
	}
	for i := range count {
		for j, c := range count[i] {
			if math.Abs(float64(c)-keys/n) > 0.1*keys/n {
				t.Errorf("place %d holds sample %d in %d of %d orders, want about %d", i, j, c, keys, keys/n)
			}
		}
	}
	// 9 of the 90 ordered pairs of samples follow each other in the file, at each of 9 places.
	if want := 9. * 9 / 90 * keys; math.Abs(float64(together)-want) > 0.1*want {
		t.Errorf("neighbours stay together %d times, want about %.0f", together, want)
	}
}

func TestMulMod(t *testing.T) {
	for range 100 {
		a, b, n := rand.Uint64N(1<<20), rand.Uint64N(1<<20), rand.Uint64N(1<<20)+1
		if got := mulMod(a, b, n); got != a*b%n {
			t.Errorf("mulMod(%d, %d, %d) is %d, want %d", a, b, n, got, a*b%n)
		}
	}
}
