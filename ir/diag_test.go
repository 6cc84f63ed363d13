package ir

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiags(t *testing.T) {
	var ds Diags
	if ds.Err() != nil {
		t.Error("no mistakes are an error")
	}
	at := func(line, column int) Pos { return Pos{"job.yaml", line, column} }
	ds.Addf(at(7, 3), "UnknownKey", "model has no key %q", "hiden")
	ds[0].Fix = "hidden"
	ds.Addf(at(2, 9), "BadValue", "batch is %d, want at least 1", 0)
	ds.Addf(at(2, 1), "BadValue", "batch comes twice")
	ds.Addf(Pos{File: "job.yaml"}, "NoPlan", "no plan fits")
	ds.Addf(Pos{}, "NoDevice", "no device")
	ds.Addf(Pos{File: "a.yaml", Line: 4}, "BadValue", "one")
	ds.Addf(Pos{File: "a.yaml", Line: 4}, "BadValue", "two")
	const want = `no device [NoDevice]
a.yaml:4: one [BadValue]
a.yaml:4: two [BadValue]
job.yaml: no plan fits [NoPlan]
job.yaml:2:1: batch comes twice [BadValue]
job.yaml:2:9: batch is 0, want at least 1 [BadValue]
job.yaml:7:3: model has no key "hiden"; did you mean hidden? [UnknownKey]`
	if diff := cmp.Diff(want, ds.Err().Error()); diff != "" {
		t.Error(diff)
	}
	if ds[0].Pos.Line != 7 {
		t.Error("Err sorts the caller's list")
	}
}

func TestNearest(t *testing.T) {
	names := []string{"hidden", "heads", "layers", "vocab", "tp"}
	for s, want := range map[string]string{
		"hiden": "hidden", "hidedn": "hidden", "HEADS": "", "head": "heads", "voacb": "vocab", "pt": "tp", "dp": "tp",
		"": "", "parameters": "", "layer": "layers", "x": "",
	} {
		if got := Nearest(s, names); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", s, got, want)
		}
	}
	if got := Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("a tie goes to %q, want the first", got)
	}
}

// The good numbers next to one are named, and never the number itself.
func TestNearestNumbers(t *testing.T) {
	isEven := func(n int) bool { return n%2 == 0 }
	for n, want := range map[int]string{0: "2", 1: "2", 2: "6", 3: "2 or 6", 6: "2", 7: "6", 100: "6"} {
		if got := NearestNumbers(n, []int{1, 2, 3, 5, 6, 7}, isEven); got != want {
			t.Errorf("NearestNumbers(%d) is %q, want %q", n, got, want)
		}
	}
}
