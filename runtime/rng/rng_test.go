package rng

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// The bits are the same on every machine and in every version, because models are reproduced from their
// seed.
func TestGolden(t *testing.T) {
	k := Key(1337, 3, 5)
	s := KeyString(1337, "blocks.0.attn.wq")
	got := fmt.Sprintf("%016x %016x %016x %016x %016x %016x %016x %x %x %x %x",
		k, Key(0), s, KeyString(0, ""), Bits(k, 0), Bits(k, 1), Bits(0, 0),
		Uniform(k, 7), Normal(s, 0), Normal(s, 1<<40), Normal(s, 3))
	const want = "73f4022fc0d19cad 9e0160293a33aaf7 4dd9e98b6ce1bbc7 e8935bc43702c005 ce83cfe581759265 " +
		"991391f8aaa001df 48218226ff3cd4bf 0x1.44264db19f546p-02 0x1.ddb05e80ecfb7p-02 0x1.bc592cb88f1a7p+00 " +
		"-0x1.759b6c4e02f91p+00"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	sum := uint64(0)
	for i := range uint64(100000) {
		sum = sum*31 + math.Float64bits(Normal(s, i))
	}
	if want := uint64(0xb1973998ca4ede5e); sum != want {
		t.Errorf("hash of 100000 normals is %#x, want %#x", sum, want)
	}
}

func TestQuantileInvertsTheDistribution(t *testing.T) {
	for _, p := range []float64{1.0 / (1 << 53), 1e-15, 1e-11, 1.3e-11, 1e-8, 0.001, 0.0749, 0.0751, 0.3, 0.5} {
		z := quantile(p)
		if back := 0.5 * math.Erfc(-z/math.Sqrt2); math.Abs(back-p) > 1e-13*p {
			t.Errorf("quantile(%g) is %g, whose distribution function is %g", p, z, back)
		}
		if q := 1 - p; 1-q == p && quantile(q) != -z {
			t.Errorf("quantile(%g) is %g, want %g", q, quantile(q), -z)
		}
	}
}

func TestLn(t *testing.T) {
	for i := range uint64(20000) {
		x := Uniform(9, i) * math.Pow(2, -float64(i%50))
		if x == 0 {
			continue
		}
		if got, want := Log(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Max(1e-3, math.Abs(want)) {
			t.Errorf("Log(%g) is %g, want %g", x, got, want)
		}
	}
}

// moments returns mean, variance, skewness and kurtosis of n draws.
func moments(n int, draw func(i uint64) float64) [4]float64 {
	var s [5]float64
	for i := range n {
		x := draw(uint64(i))
		for p, v := 1, x; p <= 4; p, v = p+1, v*x {
			s[p] += v
		}
	}
	for p := range s {
		s[p] /= float64(n)
	}
	m, v := s[1], s[2]-s[1]*s[1]
	return [4]float64{m, v, (s[3] - 3*m*s[2] + 2*m*m*m) / math.Pow(v, 1.5),
		(s[4] - 4*m*s[3] + 6*m*m*s[2] - 3*m*m*m*m) / (v * v)}
}

func TestMoments(t *testing.T) {
	const n = 200000
	tests := []struct {
		name string
		draw func(i uint64) float64
		want [4]float64
		tol  [4]float64 // five standard errors
	}{
		{"uniform", func(i uint64) float64 {
			return Uniform(42, i)
		}, [4]float64{0.5, 1. / 12, 0, 1.8}, [4]float64{.0033, .0009, .015, .013}},
		{"normal", func(i uint64) float64 {
			return Normal(42, i)
		}, [4]float64{0, 1, 0, 3}, [4]float64{.0112, .0159, .0274, .0548}},
		{"normal, one index of many keys", func(i uint64) float64 {
			return Normal(i, 0)
		}, [4]float64{0, 1, 0, 3}, [4]float64{.0112, .0159, .0274, .0548}},
		{"normal, derived keys", func(i uint64) float64 {
			return Normal(Key(1, i), 5)
		}, [4]float64{0, 1, 0, 3}, [4]float64{.0112, .0159, .0274, .0548}},
	}
	for _, tt := range tests {
		got := moments(n, tt.draw)
		for m := range got {
			if math.Abs(got[m]-tt.want[m]) > tt.tol[m] {
				t.Errorf("%s: moment %d is %.4f, want %.4f ± %.4f", tt.name, m+1, got[m], tt.want[m], tt.tol[m])
			}
		}
	}
}

// Neighbours in any direction are uncorrelated, also for keys without mixing.
func TestNeighboursAreUncorrelated(t *testing.T) {
	const n = 100000
	pairs := map[string]func(i uint64) (float64, float64){
		"indices":          func(i uint64) (float64, float64) { return Normal(7, i), Normal(7, i+1) },
		"raw keys":         func(i uint64) (float64, float64) { return Normal(7, i), Normal(8, i) },
		"keys one bit off": func(i uint64) (float64, float64) { return Normal(0, i), Normal(1<<63, i) },
		"seeds":            func(i uint64) (float64, float64) { return Normal(Key(1, 3), i), Normal(Key(2, 3), i) },
		"key and index":    func(i uint64) (float64, float64) { return Normal(i, i), Normal(i, i+1) },
		"golden steps":     func(i uint64) (float64, float64) { return Normal(0, i+1), Normal(golden, i) },
		"layers":           func(i uint64) (float64, float64) { return Normal(Key(1, i), 0), Normal(Key(1, i+1), 0) },
		"names": func(i uint64) (float64, float64) {
			return Normal(KeyString(1, "a"), i), Normal(KeyString(1, "b"), i)
		},
	}
	for name, pair := range pairs {
		sum := 0.0
		for i := range uint64(n) {
			a, b := pair(i)
			sum += a * b
		}
		if r := sum / n; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("%s: correlation %.4f", name, r)
		}
	}
}

// Each input bit of key and index flips each output bit about half of the time.
func TestAvalanche(t *testing.T) {
	const n = 4000
	for bit := range 64 {
		flips := map[string]*[64]int{"key": {}, "index": {}, "part": {}}
		for i := range uint64(n) {
			k := Bits(3, i)
			diffs := map[string]uint64{
				"key":   Bits(k, i) ^ Bits(k^1<<bit, i),
				"index": Bits(5, k) ^ Bits(5, k^1<<bit),
				"part":  Key(5, k) ^ Key(5, k^1<<bit),
			}
			for name, d := range diffs {
				for ; d != 0; d &= d - 1 {
					flips[name][bits.TrailingZeros64(d)]++
				}
			}
		}
		for name, f := range flips {
			for out, c := range f {
				if math.Abs(float64(c)/n-0.5) > 0.05 {
					t.Errorf("%s bit %d flips output bit %d in %d of %d draws", name, bit, out, c, n)
				}
			}
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	keys := map[uint64]string{}
	add := func(k uint64, what string) {
		if other, ok := keys[k]; ok {
			t.Errorf("%s and %s have the same key", what, other)
		}
		keys[k] = what
	}
	for _, p := range [][]uint64{{}, {0}, {0, 0}, {1}, {1, 0}, {0, 1}, {2, 1}, {1, 2}, {1, 2, 0}} {
		add(Key(1, p...), fmt.Sprint(p))
	}
	for _, s := range []string{"", "\x00", "\x00\x00", "a", "a\x00", "abcdefgh", "abcdefgh\x00", "abcdefghi",
		"hgfedcba"} {
		add(KeyString(1, s), fmt.Sprintf("%q", s))
	}
	for i := range uint64(100000) {
		add(Key(2, i), fmt.Sprintf("part %d", i))
	}
}

func TestKeep(t *testing.T) {
	const n = 100000
	for _, p := range []float64{0, 0.1, 0.5, 0.9, 1} {
		accepted := 0
		for i := range uint64(n) {
			if Keep(11, i, p) {
				accepted++
			}
		}
		want := (1 - p) * n
		if math.Abs(float64(accepted)-want) > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("p %g keeps %d of %d, want %.0f", p, accepted, n, want)
		}
	}
}

func TestUniformRange(t *testing.T) {
	for i := range uint64(100000) {
		if u := Uniform(1, i); u < 0 || u >= 1 {
			t.Fatalf("Uniform(1, %d) is %g", i, u)
		}
	}
}

func ExampleNormal() {
	w := KeyString(1337, "embed") // a parameter of the model with seed 1337
	fmt.Printf("%.3f %.3f\n", Normal(w, 0), Normal(w, 1))
	// Output: -0.510 0.257
}

func BenchmarkNormal(b *testing.B) {
	for i := range b.N {
		sink += Normal(1, uint64(i))
	}
}

func BenchmarkKeep(b *testing.B) {
	for i := range b.N {
		if Keep(1, uint64(i), 0.1) {
			sink++
		}
	}
}

var sink float64

// split equals its definition for numbers of all magnitudes and at the bounds.
func TestSplit(t *testing.T) {
	least := math.Sqrt2 / 2
	list := []float64{0x1p-1022, math.MaxFloat64, 0x1p-1030, 1, 2, 0.5, least, math.Nextafter(least, 0), 2 * least,
		math.Nextafter(2*least, 0)}
	for i := range uint64(10_000) {
		list = append(list, math.Float64frombits(Bits(7, i)>>2))
	}
	for _, x := range list {
		wantM, wantE := math.Frexp(x)
		if wantM < least {
			wantM, wantE = wantM*2, wantE-1
		}
		if m, e := split(x); m != wantM || e != wantE {
			t.Errorf("split(%v) is %v, %d, want %v, %d", x, m, e, wantM, wantE)
		}
	}
}
