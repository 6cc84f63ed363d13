package spec

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// The run-time fields of the job file are the settings of compiled programs, with the same bounds and values.
func TestSettingsAreThoseOfPrograms(t *testing.T) {
	found := map[string]bool{}
	eachTag(reflect.TypeFor[Job](), "", "", func(path, class string, tag reflect.StructTag) {
		row := program.FindSetting(path)
		switch {
		case class != "r":
			return
		case row == nil:
			t.Errorf("%s is a run-time field of jobs, and programs have no such setting", path)
			return
		}
		found[path] = true
		if bounds := boundsOf(t, tag); row.Bounds != bounds &&
			!(row.Bounds == program.Bounds{} && bounds == unbounded) {
			t.Errorf("%s: the bounds of programs are %+v, those of jobs %+v", path, row.Bounds, bounds)
		}
		allowed := words(tag.Get("enum"))
		if now := words(tag.Get("now")); now != nil {
			allowed = now
		}
		if !slices.Equal(row.Values, allowed) {
			t.Errorf("%s: programs allow %v, jobs %v", path, row.Values, allowed)
		}
	})
	for _, row := range program.SettingsTable {
		// the tokenizer decides the plan too, by its vocabulary; a loss scale is one key with two forms
		other := row.Path == "data.tokenizer" || row.Path == "train.precision.loss_scale"
		if !found[row.Path] && !other {
			t.Errorf("%s is a setting of programs, and no run-time field of jobs", row.Path)
		}
	}
}

var unbounded = program.Bounds{Min: math.Inf(-1), Max: math.Inf(1)}

// boundsOf reads the bounds in a field's tags. A number with one bound goes up to the largest there is.
func boundsOf(t *testing.T, tag reflect.StructTag) program.Bounds {
	b := unbounded
	read := func(key string, to *float64) bool {
		text := tag.Get(key)
		if text == "" {
			return false
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Error(err)
		}
		*to = x
		return true
	}
	read("min", &b.Min)
	b.OpenMin = read("over", &b.Min)
	read("max", &b.Max)
	b.OpenMax = read("under", &b.Max)
	if !math.IsInf(b.Min, -1) && math.IsInf(b.Max, 1) {
		b.Max = math.MaxFloat64
	}
	return b
}

// eachTag visits the fields of a struct, with their paths and classes. A mapping's class holds for its fields.
func eachTag(typ reflect.Type, path, class string, visit func(path, class string, tag reflect.StructTag)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		at, own := strings.TrimPrefix(path+"."+key, "."), f.Tag.Get("class")
		if own == "" {
			own = class
		}
		if isGroup(f.Type) {
			eachTag(f.Type, at, own, visit)
			continue
		}
		visit(at, own, f.Tag)
	}
}
