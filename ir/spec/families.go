package spec

import (
	"fmt"
	"reflect"
	"strings"
)

// Family is a supported model_type, for the reference pages.
type Family struct {
	Name         string
	Architecture string // the name of the model in config.json
	Position     string // Learned, Rotary or Alibi
	Norm         string
	MLP          string
	Keys         []FamilyKey // in the order of the struct that reads them
}

// FamilyKey is a key of a family's config.json.
type FamilyKey struct {
	Key, Doc string
	Absent   string // the default, if Doc does not give it; "" if there is none
	Only     string // the supported values, if they are fewer than the format allows
}

// Families returns all families in the order of the table.
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
		if row.Doc == row.Absent { // for keys with a single allowed value
			row.Doc = ""
		}
		out = append(out, row)
	}
	return out
}
