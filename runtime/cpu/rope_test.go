package cpu

import (
	"math"
	"math/cmplx"
	"testing"
)

func TestRoPE(t *testing.T) { both(t, testRoPE[float32], testRoPE[float64]) }

func testRoPE[F Float](t *testing.T, tol float64) {
	for _, z := range [][5]int{{0, 1, 1, 2, 0}, {1, 1, 1, 2, 0}, {2, 5, 3, 14, 7}, {1, 3, 2, 2 * 67, 100}} {
		batch, seq, heads, dim, pos0 := z[0], z[1], z[2], z[3], z[4]
		x := draw[F](1, batch*seq*heads*dim)
		y, back, want := make([]F, len(x)), make([]F, len(x)), make([]float64, len(x))
		half := dim / 2
		for i := range want {
			at, j, s := i-i%dim, i%dim%half, i/dim/heads%seq
			angle := float64(pos0+s) * math.Pow(1e4, -2*float64(j)/float64(dim)) / 4
			r := complex(float64(x[at+j]), float64(x[at+j+half])) * cmplx.Exp(complex(0, angle))
			want[at+j], want[at+j+half] = real(r), imag(r)
		}
		scale := RopeScale{Kind: "linear", Factor: 4}
		Table[F]().RoPE(y, x, batch, seq, heads, dim, pos0, 1e4, scale, false)
		near(t, name("rope ", z), y, want, tol)
		copy(back, y)
		Table[F]().RoPE(back, back, batch, seq, heads, dim, pos0, 1e4, scale, true)
		near(t, name("rope and back ", z), back, wide(x), tol)
	}
}

// naiveLlama3 is modeling_rope_utils.py of Hugging Face, line by line.
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

func TestRopeScale(t *testing.T) {
	s := RopeScale{Kind: "llama3", Factor: 8, LowFreq: 1, HighFreq: 4, OriginalLen: 8192}
	kinds := map[string]bool{}
	for j := range 64 {
		f := math.Pow(5e5, -2*float64(j)/128)
		got, want := s.freq(f), naiveLlama3(f, s)
		if math.Abs(got-want) > 1e-15*want {
			t.Errorf("frequency %v becomes %v, want %v", f, got, want)
		}
		kinds[map[bool]string{true: "kept"}[want == f]+map[bool]string{true: "divided"}[want == f/8]] = true
	}
	if len(kinds) != 3 {
		t.Errorf("saw %v, want kept, divided and between", kinds)
	}
	if (RopeScale{}).freq(0.5) != 0.5 {
		t.Error("no scaling scales")
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown kind does not panic")
		}
	}()
	RopeScale{Kind: "yarn"}.freq(1)
}
