package spec

import (
	"fmt"
	"reflect"
	"strings"
)

// Family is a model_type that can be built, for the reference.
type Family struct {
	Name         string
	Architecture string // as config.json calls the model
	Position     string // Learned, Rotary or Alibi
	Norm         string
	MLP          string
	Keys         []FamilyKey // in the order of the struct that reads them
}

// FamilyKey is a key of a family's config.json.
type FamilyKey struct {
	Key, Doc string
	Absent   string // what holds if it is absent, where Doc does not say; "" for nothing
	Only     string // the values that there are today, if they are fewer than the format's
}

// Families are all families in the table's order.
func Families() []Family {
	var out []Family
	for _, f := range families {
		row := Family{Name: f.name, Architecture: strings.Fields(f.architectures)[0], Position: f.position,
			Norm: "LayerNorm", MLP: "plain", Keys: familyKeys(f.hf.absent)}
		if f.rms {
			row.Norm = "RMSNorm"
		}
		if f.gated {
			row.MLP = "gated"
		}
		out = append(out, row)
	}
	return out
}

func familyKeys(v reflect.Value) (out []FamilyKey) {
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Anonymous && key == "":
			out = append(out, familyKeys(x)...)
			continue
		case key == "model_type":
			continue
		}
		row := FamilyKey{Key: key, Doc: f.Tag.Get("doc"), Only: f.Tag.Get("now")}
		if x.Kind() != reflect.Struct && !(x.IsZero() && absentIfZero(f)) {
			row.Absent = fmt.Sprint(x)
		}
		if row.Doc == row.Absent { // of what can only be so
			row.Doc = ""
		}
		out = append(out, row)
	}
	return out
}
