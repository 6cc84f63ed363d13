package quantity

import "testing"

// Numbers have a unit, and as many digits as a reader needs.
func TestNumbers(t *testing.T) {
	const gib = 1 << 30
	join := func(a, b string) string { return a + ", " + b }
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(38016), "38,016"}, {Count(-1234567), "-1,234,567"},
		{Seconds(12.2), "12.20 s"}, {Seconds(0.52), "0.520 s"}, {Seconds(0.0413), "41.3 ms"},
		{Seconds(-0.62), "-0.620 s"}, {Seconds(42e-6), "42.0 µs"}, {Seconds(0), "0.00 s"},
		{Seconds(3599.99), "3599.99 s"}, {Seconds(3600), "1 h 0 min"}, {Seconds(27946.5), "7 h 46 min"},
		{Seconds(7199.9), "2 h 0 min"}, {Seconds(-86400 * 50), "-1,200 h 0 min"},
		{Bytes(76665000000), "71.4 GiB"}, {Bytes(5 << 20), "5.0 MiB"}, {Bytes(1536), "1.5 KiB"},
		{Bytes(3 << 40), "3.00 TiB"}, {Bytes(0), "0 B"}, {Bytes(512), "512 B"},
		{join(BytesPair(gib, 2*gib)), "1.0 GiB, 2.0 GiB"}, {join(BytesPair(gib, gib)), "1.0 GiB, 1.0 GiB"},
		{join(BytesPair(0, gib)),
			"0 B, 1.0 GiB"},
		{join(BytesPair(12045235814, 12046309556)), "11.218 GiB, 11.219 GiB"}, {join(BytesPair(400*gib, 400*gib+1)),
			"400.000 GiB, 400.000 GiB"},
		{Signed(0.03), "+3.0 %"}, {Signed(-0.011), "-1.1 %"}, {Percent(0.593), "59.3 %"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// No prediction is certain.
func TestProbability(t *testing.T) {
	for p, want := range map[float64]string{0.5: "0.50", 0.994: "0.99", 0.996: "> 0.99", 1: "> 0.99"} {
		if got := Probability(p); got != want {
			t.Errorf("%v is %q, want %q", p, got, want)
		}
	}
}
