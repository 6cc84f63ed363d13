package amount

import "testing"

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Short(131), "131"}, {Short(0.5), "0.500"}, {Short(85930), "85.9 k"}, {Short(999.96), "1.00 k"}, {Short(1048576), "1.05 M"}, {Short(9999), "10.0 k"},
		{Params(8030261248), "8.03 B"}, {Params(174604e6), "174.6 B"}, {Params(124439808), "124.4 M"}, {Params(220500), "220.5 k"}, {Params(12), "12"},
		{Digits(1234.5, 3), "1234"}, {Digits(0.012345, 3), "0.0123"}, {Digits(0, 3), "0"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
