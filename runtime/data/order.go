package data

import (
	"math/bits"

	"github.com/planc-dev/planc/runtime/rng"
)

// rounds is the number of rounds of the Feistel network. Four give a good permutation of a large set, six also of a
// small one.
const rounds = 6

// permutation is a bijection of [0, n) that needs no memory: a Feistel network over the smallest even number of bits
// that holds n, applied until the result is below n. That takes fewer than four steps on average, because the network's
// domain is smaller than 4n.
type permutation struct {
	n    uint64
	half int // bits of each half
	keys [rounds]uint64
}

func newPermutation(n, key uint64) permutation {
	p := permutation{n: n, half: (bits.Len64(n-1) + 1) / 2}
	for r := range p.keys {
		p.keys[r] = rng.Bits(key, uint64(r))
	}
	return p
}

// at returns the image of i, which must be less than n.
func (p *permutation) at(i uint64) uint64 {
	if p.half == 0 {
		return i
	}
	for {
		i = p.network(i)
		if i < p.n {
			return i
		}
	}
}

func (p *permutation) network(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	l, r := x>>p.half, x&mask
	for _, k := range p.keys {
		l, r = r, l^rng.Bits(k, r)&mask
	}
	return l<<p.half | r
}

// mulMod returns a*b mod n without overflow.
func mulMod(a, b, n uint64) uint64 {
	hi, lo := bits.Mul64(a%n, b%n)
	_, rem := bits.Div64(hi, lo, n)
	return rem
}
