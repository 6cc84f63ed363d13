package ir

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNewMesh(t *testing.T) {
	for _, c := range []struct {
		views []View
		want  string
	}{
		{[]View{{{"tp", 1}, {"dp", 1}}}, "1"},
		{[]View{{{"tp", 2}, {"dp", 4}}}, "tp=2 dp=4"},
		{[]View{{{"tp", 4}, {"dp", 4}}, {{"ep", 8}, {"edp", 2}}},
			"tp=4 dp.0=2 dp.1=2 : dp=dp.0*dp.1 ep=tp*dp.0 edp=dp.1"},
		{[]View{{{"tp", 2}, {"dp", 4}}, {{"etp", 1}, {"ep", 8}, {"edp", 1}}}, "tp=2 dp=4 : ep=tp*dp"},
		{[]View{{{"rep", 2}, {"kv", 2}}, {{"tp", 4}}}, "rep=2 kv=2 : tp=rep*kv"},
		{[]View{{{"inner", 2}, {"outer", 3}}, {{"dp", 6}}}, "inner=2 outer=3 : dp=inner*outer"},
	} {
		m, err := NewMesh(c.views...)
		if err != nil || m.String() != c.want {
			t.Errorf("%v: %v, %v; want %s", c.views, m, err, c.want)
		}
	}
	_, err := NewMesh(View{{"a", 4}, {"b", 3}}, View{{"c", 6}, {"d", 2}})
	if want := "axes do not nest: one ends after 4 ranks, another after 6"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// anyView draws a factoring of 2^k ranks.
func anyView(t *rapid.T, names []Axis, k int) View {
	var v View
	for i, n := range names {
		e := k
		if i+1 < len(names) {
			e = rapid.IntRange(0, k).Draw(t, string(n))
		}
		v, k = append(v, Atom{n, 1 << e}), k-e
	}
	return v
}

// A mesh refines its views: the sizes of the atoms multiply to the number of ranks, and each axis of each view exists
// with its size, as a run of the mesh's atoms.
func TestMeshRefines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 8).Draw(t, "k")
		views := []View{anyView(t, []Axis{"tp", "cp", "dp"}, k), anyView(t, []Axis{"etp", "ep", "edp"}, k)}
		m, err := NewMesh(views...)
		if err != nil {
			t.Fatal(err)
		}
		if m.Size() != 1<<k {
			t.Fatalf("%v has %d ranks, want %d", m, m.Size(), 1<<k)
		}
		for _, v := range views {
			var all, axes []Axis
			for _, a := range v {
				if m.Has(a.Name) != (a.Size > 1) {
					t.Fatalf("mesh %v of view %v", m, v)
				}
				if a.Size > 1 {
					axes = append(axes, a.Name)
					all = append(all, m.expand(a.Name)...)
					if n := m.Ranks([]Axis{a.Name}); n != a.Size {
						t.Fatalf("%s has %d ranks in %v, want %d", a.Name, n, m, a.Size)
					}
				}
			}
			slices.Reverse(axes)
			if !slices.Equal(all, m.Expand(axes)) || len(all) != len(m.Atoms) {
				t.Fatalf("view %v is %v of %v", v, all, m)
			}
		}
		second, err := ParseMesh(m.String())
		if err != nil || second.String() != m.String() {
			t.Fatalf("%v reads back as %v, %v", m, second, err)
		}
	})
}

func TestMeshErrors(t *testing.T) {
	for s, want := range map[string]string{
		"":               "mesh: must be 1, or name=size for each axis",
		"dp=1":           `mesh: "dp=1" must be a new name=size, with a size of at least 2`,
		"dp=2 dp=2":      `mesh: "dp=2" must be a new name=size, with a size of at least 2`,
		"dp=2 : tp=":     `mesh: "tp=": unknown or repeated atom ""`,
		"dp=2 : tp=x":    `mesh: "tp=x": unknown or repeated atom "x"`,
		"a=2 : b=a*a":    `mesh: "b=a*a": unknown or repeated atom "a"`,
		"a=2 : a=a":      `mesh: "a=a" must be a new name=atom*atom`,
		"a=4096 b=65536": "mesh: has more than 16777216 ranks",
	} {
		if _, err := ParseMesh(s); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", s, err, want)
		}
	}
}

// A rank's part of the vocabulary is rounded up, unless a rank would hold only padding. Other dims are not rounded.
func TestWidth(t *testing.T) {
	m := Mesh{Atoms: []Atom{{Name: "tp", Size: 4}}, VocabMultiple: 64}
	for _, x := range []struct {
		dim         Dim
		size, whole int
		split       int // over tp
	}{
		{Vocab, 50257, 50304, 12608}, // 12565 rows
		{Vocab, 50304, 50304, 12608}, // 12576 rows
		{Vocab, 256, 256, 64},
		{Vocab, 193, 256, 64}, // the last rank has one row
		{Vocab, 192, 192, 48}, // parts of 64 would leave none
		{Vocab, 61, 64, 16},
		{Hidden, 52, 52, 13},
	} {
		e := Extent{Dim: x.dim, Size: x.size}
		if got := m.Width(&e); got != x.whole {
			t.Errorf("%s %d: the whole dim has width %d, want %d", x.dim, x.size, got, x.whole)
		}
		e.Axes = []Axis{"tp"}
		if got := m.Width(&e); got != x.split {
			t.Errorf("%s %d: a part of four has width %d, want %d", x.dim, x.size, got, x.split)
		}
		if typ := (Type{Dims: []Extent{e}}); typ.LocalElems(m) != x.split || typ.Local(m)[0] != x.split {
			t.Errorf("%s %d: %v has %d elements and local sizes %v", x.dim, x.size, typ, typ.LocalElems(m),
				typ.Local(m))
		}
	}
}
