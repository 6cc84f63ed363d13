package cpu

import (
	"math"
	"math/cmplx"
	"testing"
)

func TestRoPE(t *testing.T) { both(t, testRoPE[float32], testRoPE[float64]) }

func testRoPE[F Float](t *testing.T, tol float64) {
	for _, z := range [][6]int{{0, 1, 1, 2, 2, 0}, {1, 1, 1, 2, 2, 0}, {2, 5, 3, 14, 14, 7},
		{1, 3, 2, 2 * 67, 2 * 67, 100},
		{2, 3, 2, 8, 2, 5}, {1, 3, 2, 7, 6, 1}, {1, 2, 3, 5, 0, 1}} {
		batch, seq, heads, dim, turn, pos0 := z[0], z[1], z[2], z[3], z[4], z[5]
		x := draw[F](1, batch*seq*heads*dim)
		y, back, want := make([]F, len(x)), make([]F, len(x)), wide(x)
		half := turn / 2
		for i := range want {
			at, j, s := i-i%dim, i%dim, i/dim/heads%seq
			if j >= half {
				continue
			}
			angle := float64(pos0+s) * math.Pow(1e4, -2*float64(j)/float64(turn)) / 4
			r := complex(float64(x[at+j]), float64(x[at+j+half])) * cmplx.Exp(complex(0, angle))
			want[at+j], want[at+j+half] = real(r), imag(r)
		}
		scale := RopeScale{Kind: "linear", Factor: 4}
		Table[F]().RoPE(y, x, batch, seq, heads, dim, turn, Where{At: pos0}, 1e4, scale, false)
		near(t, name("rope ", z), y, want, tol)
		copy(back, y)
		Table[F]().RoPE(back, back, batch, seq, heads, dim, turn, Where{At: pos0}, 1e4, scale, true)
		near(t, name("rope and back ", z), back, wide(x), tol)
	}
}

// The gradient of RoPE with an attention factor is its transpose: dy·RoPE(x) is RoPE'(dy)·x.
func TestRoPEGradient(t *testing.T) {
	const dim, seq = 12, 5
	scale := RopeScale{Kind: "yarn", Factor: 4, BetaFast: 32, BetaSlow: 1, OriginalLen: 64, Attention: 1.3}
	x, dy := draw[float64](1, seq*dim), draw[float64](2, seq*dim)
	y, dx := make([]float64, len(x)), make([]float64, len(x))
	Table[float64]().RoPE(y, x, 1, seq, 1, dim, 8, Where{At: 3}, 100, scale, false)
	Table[float64]().RoPE(dx, dy, 1, seq, 1, dim, 8, Where{At: 3}, 100, scale, true)
	near(t, "dy·y", []float64{along(dy, y)}, []float64{along(dx, x)}, 1e-13)
	size := func(x []float64) float64 { return math.Sqrt(along(x[:8], x[:8])) }
	near(t, "length of what is turned", []float64{size(y)}, []float64{1.3 * size(x)}, 1e-13)
}

// naiveLlama3 follows modeling_rope_utils.py of Hugging Face line by line.
func naiveLlama3(invFreq float64, s RopeScale) float64 {
	lowWave, highWave := float64(s.OriginalLen)/s.LowFreq, float64(s.OriginalLen)/s.HighFreq
	wave := 2 * math.Pi / invFreq
	llama := invFreq
	if wave > lowWave {
		llama = invFreq / s.Factor
	}
	smooth := (float64(s.OriginalLen)/wave - s.LowFreq) / (s.HighFreq - s.LowFreq)
	if !(wave < highWave) && !(wave > lowWave) {
		return (1-smooth)*llama/s.Factor + smooth*llama
	}
	return llama
}

// transformersRope holds figures of transformers 5.23.0's modeling_rope_utils.py, which computes in
// float32: frequencies of some pairs, for a base and a number of rotated elements.
var transformersRope = []struct {
	name  string
	theta float64
	turn  int
	scale RopeScale
	freqs map[int]float64
}{
	{"linear", 10000, 64, RopeScale{Kind: "linear", Factor: 4},
		map[int]float64{0: 0.25, 1: 0.18747355, 8: 0.0250000004, 10: 0.0140585322, 16: 0.00249999994,
			21: 0.000592843455, 24: 0.000250000012, 31: 3.33380376e-05}},
	{"dynamic beyond", 10000, 64, RopeScale{Kind: "dynamic", Factor: 2, OriginalLen: 2048, SeqLen: 8192},
		map[int]float64{0: 1, 1: 0.70426929, 8: 0.0605215691, 10: 0.0300184153, 16: 0.00366286025, 21: 0.000634620723,
			24: 0.000221682058, 31: 1.90503069e-05}},
	{"dynamic within", 10000, 64, RopeScale{Kind: "dynamic", Factor: 2, OriginalLen: 2048, SeqLen: 512},
		map[int]float64{0: 1, 1: 0.749894202, 8: 0.100000001, 10: 0.0562341288, 16: 0.00999999978, 21: 0.00237137382,
			24: 0.00100000005, 31: 0.00013335215}},
	{"llama3", 500000, 128, RopeScale{Kind: "llama3", Factor: 8, LowFreq: 1, HighFreq: 4, OriginalLen: 8192},
		map[int]float64{0: 1, 1: 0.814617217, 16: 0.0376060307, 21: 0.0134904198, 32: 0.000524846022,
			42: 2.2748929e-05, 48: 6.64786967e-06, 63: 3.06892588e-07}},
	{"yarn", 1e6, 128, RopeScale{Kind: "yarn", Factor: 4, BetaFast: 32, BetaSlow: 1, OriginalLen: 32768},
		map[int]float64{0: 1, 1: 0.805842221, 16: 0.0316227786, 21: 0.0107460786, 32: 0.000602941145,
			42: 2.88695483e-05, 48: 7.90569356e-06, 63: 3.10234441e-07}},
	{"yarn, exact", 10000, 64, RopeScale{Kind: "yarn", Factor: 40, BetaFast: 32, BetaSlow: 1, OriginalLen: 4096,
		Exact: true},
		map[int]float64{0: 1, 1: 0.749894202, 8: 0.100000001, 10: 0.0562341288, 16: 0.00552406255, 21: 0.000349887385,
			24: 2.49999994e-05, 31: 3.33380353e-06}},
	{"yarn of a part", 10000, 32, RopeScale{Kind: "yarn", Factor: 4, BetaFast: 16, BetaSlow: 2, OriginalLen: 256},
		map[int]float64{0: 1, 1: 0.562341332, 4: 0.0549999997, 5: 0.0224936493, 8: 0.00249999994, 10: 0.000790569466,
			12: 0.000250000012, 15: 4.44569851e-05}},
	{"longrope", 10000, 16, RopeScale{Kind: "longrope", Factors: []float64{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}},
		map[int]float64{0: 1, 1: 0.210818499, 2: 0.0500000007, 4: 0.00333333341, 5: 0.000903507927, 6: 0.000250000012,
			7: 7.02728357e-05}},
}

func TestRopeScale(t *testing.T) {
	for _, c := range transformersRope {
		ts := c.scale.turns(c.theta, c.turn)
		for j, want := range c.freqs {
			if got := ts.angle(j); math.Abs(got-want) > 3e-7*want {
				t.Errorf("%s: frequency %d is %v, want %v", c.name, j, got, want)
			}
		}
	}
	s := RopeScale{Kind: "llama3", Factor: 8, LowFreq: 1, HighFreq: 4, OriginalLen: 8192}
	ts, kinds := s.turns(5e5, 128), map[string]bool{}
	for j := range 64 {
		f := math.Pow(5e5, -2*float64(j)/128)
		got, want := ts.angle(j), naiveLlama3(f, s)
		if math.Abs(got-want) > 1e-15*want {
			t.Errorf("frequency %v becomes %v, want %v", f, got, want)
		}
		kinds[map[bool]string{true: "kept"}[want == f]+map[bool]string{true: "divided"}[want == f/8]] = true
	}
	if len(kinds) != 3 {
		t.Errorf("saw %v, want kept, divided and between", kinds)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown kind does not panic")
		}
	}()
	RopeScale{Kind: "ntk"}.turns(1e4, 2)
}
