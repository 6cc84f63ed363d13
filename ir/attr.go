package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// attrFields are the attributes in the order in which they print. get returns "" for the zero value.
var attrFields = []struct {
	name string
	get  func(*Attr) string
	set  func(*Attr, string) error
}{
	{"dim", func(a *Attr) string {
		return string(a.Dim)
	}, func(a *Attr, s string) error {
		a.Dim = Dim(s)
		return checkName(s)
	}},
	{"to", func(a *Attr) string {
		return string(a.To)
	}, func(a *Attr, s string) error {
		a.To = Dim(s)
		return checkName(s)
	}},
	{"axes", func(a *Attr) string { return joinAxes(a.Axes, "@") },
		func(a *Attr, s string) error { a.Axes = splitAxes(s, "@"); return checkAxes(a.Axes) }},
	{"monoid", func(a *Attr) string { return a.Monoid.String() }, setMonoid},
	{"into", func(a *Attr) string { return a.Into }, func(a *Attr, s string) error { a.Into = s; return checkName(s) }},
	{"eps", getFloat(func(a *Attr) *float64 { return &a.Eps }), setFloat(func(a *Attr) *float64 { return &a.Eps })},
	{"scale", getFloat(func(a *Attr) *float64 {
		return &a.Scale
	}), setFloat(func(a *Attr) *float64 {
		return &a.Scale
	})},
	{"theta", getFloat(func(a *Attr) *float64 {
		return &a.Theta
	}), setFloat(func(a *Attr) *float64 {
		return &a.Theta
	})},
	{"rope", func(a *Attr) string { return a.Rope }, func(a *Attr, s string) error { a.Rope = s; return nil }},
	{"drop", getFloat(func(a *Attr) *float64 { return &a.Drop }), setFloat(func(a *Attr) *float64 { return &a.Drop })},
	{"key", getInt(func(a *Attr) *int { return &a.Key }), setInt(func(a *Attr) *int { return &a.Key })},
	{"window", getInt(func(a *Attr) *int { return &a.Window }), setInt(func(a *Attr) *int { return &a.Window })},
	{"softcap", getFloat(func(a *Attr) *float64 {
		return &a.Softcap
	}), setFloat(func(a *Attr) *float64 {
		return &a.Softcap
	})},
	{"layers", func(a *Attr) string { return string(a.Layers) }, setLayers},
	{"local", getFloat(func(a *Attr) *float64 {
		return &a.Local
	}), setFloat(func(a *Attr) *float64 {
		return &a.Local
	})},
	{"turn", getInt(func(a *Attr) *int { return &a.Turn }), setInt(func(a *Attr) *int { return &a.Turn })},
	{"adjacent", getBool(func(a *Attr) *bool { return &a.Pairs }), setBool(func(a *Attr) *bool { return &a.Pairs })},
	{"offset", getInt(func(a *Attr) *int { return &a.Offset }), setInt(func(a *Attr) *int { return &a.Offset })},
	{"most", getInt(func(a *Attr) *int { return &a.Max }), setInt(func(a *Attr) *int { return &a.Max })},
	{"frozen", getInt(func(a *Attr) *int { return &a.Frozen }), setInt(func(a *Attr) *int { return &a.Frozen })},
	{"gate", func(a *Attr) string { return a.Gate }, func(a *Attr, s string) error { a.Gate = s; return checkName(s) }},
	{"groups", getInt(func(a *Attr) *int { return &a.Groups }), setInt(func(a *Attr) *int { return &a.Groups })},
	{"best", getInt(func(a *Attr) *int { return &a.Best }), setInt(func(a *Attr) *int { return &a.Best })},
	{"bucket", getInt(func(a *Attr) *int { return &a.Bucket }), setInt(func(a *Attr) *int { return &a.Bucket })},
	{"causal", getBool(func(a *Attr) *bool { return &a.Causal }), setBool(func(a *Attr) *bool { return &a.Causal })},
	{"documents", getBool(func(a *Attr) *bool { return &a.Documents }),
		setBool(func(a *Attr) *bool { return &a.Documents })},
	{"alibi", getBool(func(a *Attr) *bool { return &a.Alibi }), setBool(func(a *Attr) *bool { return &a.Alibi })},
	{"unit", getBool(func(a *Attr) *bool { return &a.Unit }), setBool(func(a *Attr) *bool { return &a.Unit })},
	{"first_last", getBool(func(a *Attr) *bool { return &a.FirstLast }),
		setBool(func(a *Attr) *bool { return &a.FirstLast })},
	{"share", getBool(func(a *Attr) *bool { return &a.Share }), setBool(func(a *Attr) *bool { return &a.Share })},
	{"in", func(a *Attr) string { return a.In }, func(a *Attr, s string) error { a.In = s; return nil }},
	{"round", getBool(func(a *Attr) *bool { return &a.Round }), setBool(func(a *Attr) *bool { return &a.Round })},
	{"inverse", getBool(func(a *Attr) *bool { return &a.Inverse }), setBool(func(a *Attr) *bool { return &a.Inverse })},
}

// String prints the attributes that are not zero: dim=hidden eps=1e-05 causal.
func (a *Attr) String() string {
	var parts []string
	for _, f := range attrFields {
		switch v := f.get(a); v {
		case "":
		case "true":
			parts = append(parts, f.name)
		default:
			parts = append(parts, f.name+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

func parseAttr(s string) (Attr, error) {
	var a Attr
	for _, part := range strings.Fields(s) {
		name, value, _ := strings.Cut(part, "=")
		if err := a.setField(name, value); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *Attr) setField(name, value string) error {
	for _, f := range attrFields {
		if f.name != name {
			continue
		}
		if f.get(a) != "" {
			return fmt.Errorf("attribute %s is given twice", name)
		}
		if err := f.set(a, value); err != nil {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
		if f.get(a) == "" {
			return fmt.Errorf("attribute %s=%s is the default; leave it out", name, value)
		}
		return nil
	}
	return fmt.Errorf("unknown attribute %q", name)
}

func setMonoid(a *Attr, s string) error {
	m, ok := parseMonoid(s)
	if !ok {
		return fmt.Errorf("unknown monoid %q", s)
	}
	a.Monoid = m
	return nil
}

func setLayers(a *Attr, s string) error {
	l, err := ParseLayers(s)
	a.Layers = l
	return err
}

func getFloat(field func(*Attr) *float64) func(*Attr) string {
	return func(a *Attr) string {
		if *field(a) == 0 {
			return ""
		}
		return float(*field(a))
	}
}

func setFloat(field func(*Attr) *float64) func(*Attr, string) error {
	return func(a *Attr, s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || float(f) != s {
			return fmt.Errorf("%q is not a number in the form that planc prints", s)
		}
		*field(a) = f
		return nil
	}
}

func getInt(field func(*Attr) *int) func(*Attr) string {
	return func(a *Attr) string {
		if *field(a) == 0 {
			return ""
		}
		return strconv.Itoa(*field(a))
	}
}

func setInt(field func(*Attr) *int) func(*Attr, string) error {
	return func(a *Attr, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || strconv.Itoa(n) != s {
			return fmt.Errorf("%q must be a whole number", s)
		}
		*field(a) = n
		return nil
	}
}

func getBool(field func(*Attr) *bool) func(*Attr) string {
	return func(a *Attr) string {
		if *field(a) {
			return "true"
		}
		return ""
	}
}

func setBool(field func(*Attr) *bool) func(*Attr, string) error {
	return func(a *Attr, s string) error {
		*field(a) = s == ""
		return nil
	}
}
