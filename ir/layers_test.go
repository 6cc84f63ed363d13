package ir

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A pattern reads back, and says of each layer what was asked.
func TestLayers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.SliceOfN(rapid.Bool(), 1, 7).Draw(t, "period")
		var local []bool
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			local = append(local, period...)
		}
		l := LayersOf(local)
		if second, err := ParseLayers(string(l)); second != l || err != nil {
			t.Fatalf("%q reads back as %q, %v", l, second, err)
		}
		if l == "" {
			if slices.Contains(local, true) && slices.Contains(local, false) {
				t.Fatalf("%v has no pattern", local)
			}
			return
		}
		for i, want := range local {
			if l.Local(i) != want {
				t.Fatalf("%q: layer %d is local: %v", l, i, !want)
			}
		}
	})
}

func TestParseLayersWrong(t *testing.T) {
	for _, s := range []string{"l", "0l1f", "5l", "1l1f1l1f", "5x", "1l1l1f", "01l1f", "99999999999999999999l1f"} {
		if l, err := ParseLayers(s); err == nil {
			t.Errorf("%q reads as %q", s, l)
		}
	}
}
