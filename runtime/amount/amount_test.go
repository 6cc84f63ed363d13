package amount

import (
	"strconv"
	"strings"
	"testing"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Short(131), "131"}, {Short(0.5), "0.500"}, {Short(85930), "85.9 k"}, {Short(999.96), "1.00 k"},
		{Short(1048576), "1.05 M"}, {Short(9999), "10.0 k"},
		{Params(8030261248), "8.03 B"}, {Params(174604e6), "174.6 B"}, {Params(124439808), "124.4 M"},
		{Params(220500), "220.5 k"}, {Params(12), "12"},
		{Params(99_960_000), "100.0 M"}, {Params(999_400_000), "999.4 M"}, {Params(999_600_000), "1.00 B"},
		{Params(9_996_000), "10.0 M"}, {Params(1_234_000e9), "1234.0 T"},
		{Digits(1234.5, 3), "1234"}, {Digits(0.012345, 3), "0.0123"}, {Digits(0, 3), "0"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// What is nearly the next unit is that, so that no amount below 1000 T has four digits before its point, or begins with
// 0 behind a unit.
func TestUnitsMeet(t *testing.T) {
	for _, size := range []float64{1e3, 1e6, 1e9, 1e12} {
		for x := 0.99; x < 1.01; x += 1e-5 {
			for _, text := range []string{Short(x * size), Params(int64(x * size))} {
				number, unit, _ := strings.Cut(text, " ")
				if v, err := strconv.ParseFloat(number, 64); err != nil || v >= 1000 || unit != "" && v < 1 {
					t.Errorf("%v is %q", x*size, text)
				}
			}
		}
	}
}
