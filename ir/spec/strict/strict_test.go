package strict

import (
	"reflect"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
)

type sample struct {
	N    int64             `yaml:"n" min:"0"`
	F    float64           `yaml:"f"`
	B    bool              `yaml:"b"`
	S    string            `yaml:"s" enum:"a,b"`
	L    []int             `yaml:"l"`
	M    map[string]string `yaml:"m"`
	In   *sample           `yaml:"in"`
	Pair [2]float64        `yaml:"pair"`
}

func TestDecode(t *testing.T) {
	d, diags := Parse("a.yaml", []byte("n: 1.5T\nf: 1e-5\nb: true\ns: b\nl: [1, 0x10, 1K]\nm: {x.y: 'z', q: "+
		"null}\nin:\n  n: 2\npair: [1, .5]\n"))
	var got sample
	diags = append(diags, d.Decode(&got)...)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	want := sample{N: 1.5e12, F: 1e-5, B: true, S: "b", L: []int{1, 16, 1000}, M: map[string]string{"x.y": "z"},
		In: &sample{N: 2}, Pair: [2]float64{1, .5}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for path, want := range map[string]string{"n": "a.yaml:1:4", "in": "a.yaml:7:1", "in.n": "a.yaml:8:6",
		"in.nosuch": "a.yaml:7:1",
		"nosuch":    "a.yaml:1:1", "l[1]": "a.yaml:5:8"} {
		if got := d.Pos(path).String(); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}

// An unknown key is looked for in a type that holds itself, once.
func TestUnknownKeyOfRecursiveType(t *testing.T) {
	d, _ := Parse("a.yaml", []byte("n: 1\nin: {x: 1, s: a}\nk: 2\n"))
	var got sample
	diags := d.Decode(&got)
	const want = "a.yaml:2:6: no key x in in; did you mean n? [UnknownKey]\na.yaml:3:1: no key k; did you mean n? " +
		"[UnknownKey]"
	if err := diags.Err(); err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	if got := Places(reflect.TypeFor[sample](), "s"); !reflect.DeepEqual(got, []string{"s"}) {
		t.Errorf("s is at %q", got)
	}
}

func FuzzPrintRoundTrip(f *testing.F) {
	f.Add("n: 1\nin: {l: [1, 2], in: {s: 'true'}}")
	f.Add("x: 1\nin: {k: 2}")
	f.Add("s: \"null\"\nm: {a: '010', b: 1e3, c: ~, d: \"x\\ny\"}")
	f.Fuzz(func(t *testing.T, text string) {
		d, diags := Parse("a.yaml", []byte(text))
		if len(diags) > 0 || d.Root.Kind != Map {
			return
		}
		var a, b sample
		if len(d.Decode(&a)) > 0 {
			return
		}
		e, diags := Parse("b.yaml", d.YAML())
		if e.Root.Kind == Null || (e.Root.Kind == Map && len(e.Root.Fields) == 0) {
			return
		}
		diags = append(diags, e.Decode(&b)...)
		if len(diags) > 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("%q prints as %q: %v\n%+v\n%+v", text, d.YAML(), diags, a, b)
		}
	})
}
