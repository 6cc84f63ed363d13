package ir

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestRopeText(t *testing.T) {
	for text, want := range map[string]RopeScaling{
		"":                  {},
		"linear,4":          {Kind: "linear", Factor: 4},
		"dynamic,2.5,2048":  {Kind: "dynamic", Factor: 2.5, Original: 2048},
		"llama3,8,1,4,8192": {Kind: "llama3", Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192},
		"yarn,4,32,1,4096,1.25": {Kind: "yarn", Factor: 4, BetaFast: 32, BetaSlow: 1, Original: 4096,
			Attention: 1.25},
		"yarn,4,32,1,4096,1.25,exact": {Kind: "yarn", Factor: 4, BetaFast: 32, BetaSlow: 1, Original: 4096,
			Attention: 1.25, Exact: true},
		"longrope,1.1902380714,1;1.05;3.5": {Kind: "longrope", Attention: 1.1902380714,
			Factors: []float64{1, 1.05, 3.5}},
	} {
		got, err := ParseRope(text)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != text {
			t.Errorf("%q reads as %+v, %v, and prints as %q", text, got, err, got)
		}
	}
}

func TestWrongRopeText(t *testing.T) {
	for text, want := range map[string]string{
		"ntk,2": `rotary scaling "ntk,2": unknown kind "ntk"; use one of dynamic, linear, llama3, ` +
			`longrope, yarn`,
		"linear":           `rotary scaling "linear": linear must be followed by factor`,
		"linear,4,0,0,0":   `rotary scaling "linear,4,0,0,0": linear must be followed by factor`,
		"linear,4.0":       `rotary scaling "linear,4.0" must be written "linear,4"`,
		"linear,x":         `rotary scaling "linear,x": factor: strconv`,
		"longrope,1,1;;2":  `rotary scaling "longrope,1,1;;2": factors: strconv`,
		"dynamic,2,2048.5": `rotary scaling "dynamic,2,2048.5": original: strconv`,
	} {
		if _, err := ParseRope(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The figures are transformers 5.23.0's, of modeling_rope_utils.py.
func TestRopeAttention(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{YarnAttention(4, 0, 0), 1.138629436111989},
		{YarnAttention(1, 0, 0), 1},
		{YarnAttention(0.5, 0.7, 0.9), 1},
		{YarnAttention(40, 1, 1), 1},
		{YarnAttention(40, 0.707, 1), 0.9210423553163399},
		{YarnAttention(40, 0.707, 0), 0.1*math.Log(40) + 1},
		{LongRopeAttention(1, 4096), 1},
		{LongRopeAttention(32, 4096), 1.1902380714238083}, // Phi-3-mini-128k
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("attention factor %v, want %v", c.got, c.want)
		}
	}
}
