package cpu

import "math"

// RopeScale changes the frequencies of RoPE for longer sequences than the model was first trained on. Kind
// is "" for no change, or one of Hugging Face's names, with its formula.
type RopeScale struct {
	Kind   string
	Factor float64 // divisor of the (low) frequencies
	// llama3: waves per OriginalLen below which Factor applies fully, and above which it does not apply
	LowFreq, HighFreq float64
	// yarn: turns within OriginalLen above which Factor does not apply, and below which it applies fully
	BetaFast, BetaSlow float64
	OriginalLen        int       // positions in the first training
	SeqLen             int       // dynamic: tokens per row
	Attention          float64   // yarn, longrope: factor of cos and sin
	Exact              bool      // yarn: the range of the ramp is not rounded
	Factors            []float64 // longrope: of each pair
}

// turns holds the frequencies of one RoPE.
type turns struct {
	RopeScale
	theta     float64 // the base
	turn      int     // elements that are rotated
	low, high float64 // yarn: pairs between which scaling increases from none to full
	attention float64
}

// turns computes what does not depend on the pair.
func (s RopeScale) turns(theta float64, turn int) turns {
	t := turns{RopeScale: s, theta: theta, turn: turn, attention: 1}
	switch s.Kind {
	case "", "linear", "llama3":
	case "dynamic":
		n := float64(turn)
		reach := float64(max(s.SeqLen, s.OriginalLen)) / float64(s.OriginalLen)
		t.theta *= math.Pow(float64(s.Factor*reach)-(s.Factor-1), n/(n-2))
	case "yarn":
		t.low, t.high = t.ramp()
		t.attention = s.Attention
	case "longrope":
		t.attention = s.Attention
	default:
		panic("cpu: unknown RoPE scaling " + s.Kind)
	}
	return t
}

// ramp returns the range of pairs in which yarn's scaling increases from none to full.
func (t *turns) ramp() (low, high float64) {
	pair := func(waves float64) float64 { // returns the pair that turns this often within OriginalLen
		return float64(t.turn) * math.Log(float64(t.OriginalLen)/(2*math.Pi*waves)) / (2 * math.Log(t.theta))
	}
	low, high = pair(t.BetaFast), pair(t.BetaSlow)
	if !t.Exact {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(t.turn-1))
	if low == high {
		high += 0.001
	}
	return low, high
}

// angle returns pair j's frequency.
func (t *turns) angle(j int) float64 {
	f := math.Pow(t.theta, -2*float64(j)/float64(t.turn))
	switch t.Kind {
	case "linear":
		return f / t.Factor
	case "longrope":
		return f / t.Factors[j]
	case "llama3":
		return t.llama3(f)
	case "yarn":
		scaled := min(max((float64(j)-t.low)/(t.high-t.low), 0), 1)
		return float64(f/t.Factor*scaled) + float64(f*(1-scaled))
	}
	return f
}

func (t *turns) llama3(f float64) float64 {
	waves := float64(t.OriginalLen) * f / (2 * math.Pi)
	switch {
	case waves < t.LowFreq:
		return f / t.Factor
	case waves > t.HighFreq:
		return f
	}
	smooth := (waves - t.LowFreq) / (t.HighFreq - t.LowFreq)
	return float64((1-smooth)*f/t.Factor) + float64(smooth*f)
}

// at returns cosine and sine of a frequency at a position, times the attention factor.
func (t *turns) at(pos int, freq float64) (cos, sin float64) {
	sin, cos = math.Sincos(float64(float64(pos) * freq))
	return t.attention * cos, t.attention * sin
}
