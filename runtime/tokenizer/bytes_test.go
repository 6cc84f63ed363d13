package tokenizer

import "testing"

func TestBytes(t *testing.T) {
	for _, s := range []string{"", "Opticks", "naïve\x00\xff"} {
		if got := Decode(Bytes{}, encode(t, Bytes{}, s)); got != s {
			t.Errorf("%q decodes to %q", s, got)
		}
	}
	if got := Decode(Bytes{}, []int32{65, 256, -1, 66}); got != "A\uFFFD\uFFFDB" {
		t.Errorf("tokens that are no bytes decode to %q", got)
	}
}
