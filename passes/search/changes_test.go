package search

import "testing"

// Many pins that are all given up are one field of the job; a few, or some, are named.
func TestPinsGivenUpAreFolded(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 8), gpt2Config(12, 768, 12, 50257, 1024), 1024, 64, mixed)
	p.Pins = Pins{"dp": {"8"}, "tp": {"1"}, "pp": {"1"}, "zero": {"0"}}
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"dp", "tp", "pp", "zero"}, "--set plan=null"},
		{[]string{"dp", "zero"}, "--set plan.dp=null --set plan.zero=null"},
		{[]string{"dp", "tp", "pp"}, "--set plan.dp=null --set plan.pp=null --set plan.tp=null"},
	} {
		if got := (Change{Set: s.without(c.keys...).set}).Args(); got != c.want {
			t.Errorf("%q: %s, want %s", c.keys, got, c.want)
		}
	}
}
