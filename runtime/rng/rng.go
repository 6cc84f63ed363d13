package rng

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// golden is 2^64 divided by the golden ratio, rounded to odd: the step of splitmix64's counter.
const golden = 0x9E3779B97F4A7C15

// Key derives a key from a seed and the numbers that identify a draw, in order: Key(s, 1, 2), Key(s, 2, 1)
// and Key(s, 1) are unrelated. Keys can be chained: the result may be the seed of another Key or KeyString.
func Key(seed uint64, parts ...uint64) uint64 {
	k := mix(seed + golden)
	for _, p := range parts {
		k = step(k, p)
	}
	return mix(k ^ uint64(len(parts)+1))
}

// KeyString derives a key from a seed and a name, such as a parameter's.
func KeyString(seed uint64, s string) uint64 {
	k := mix(seed + golden)
	n := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		k = step(k, binary.LittleEndian.Uint64([]byte(s[:8])))
	}
	var tail [8]byte
	copy(tail[:], s)
	return mix(step(k, binary.LittleEndian.Uint64(tail[:])) ^ ^n) // ^n differs from Key's counts of parts
}

// Bits returns 64 random bits: number i of the key's stream.
func Bits(key, i uint64) uint64 {
	x := mix(key + golden*(i+1))
	return mix(x ^ bits.RotateLeft64(key, 32)) // separates streams that coincide after the first round
}

// Uniform returns number i of the key's stream as a multiple of 2^-53 in [0, 1).
func Uniform(key, i uint64) float64 {
	return float64(Bits(key, i)>>11) * (1.0 / (1 << 53))
}

// Keep reports whether element i survives dropout with probability p in [0, 1]. It is true with probability
// 1-p. A p of 0 keeps everything, and a p of 1 drops everything.
func Keep(key, i uint64, p float64) bool { return Uniform(key, i) >= p }

// Counter returns the counter of a key's stream at number i. It increases by splitmix64's step per number.
// With [Least], a loop over many numbers can compute Keep: it keeps element j after i if
// mix(mix(Counter+j*step) ^ key rotated by 32 bits)>>11 is at least Least(p).
func Counter(key, i uint64) uint64 { return key + golden*(i+1) }

// Least returns the smallest value of Bits' upper 53 bits that survives dropout with probability p in [0,
// 1].
func Least(p float64) uint64 { return uint64(math.Ceil(p * (1 << 53))) }

// step mixes one number into a key.
func step(k, part uint64) uint64 { return mix(bits.RotateLeft64(k, 23)*5 + mix(part+golden)) }

// mix is a bijection of 64-bit words in which each input bit flips each output bit with probability
// close to 1/2 (splitmix64's finaliser with the constants of David Stafford's variant 13).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
