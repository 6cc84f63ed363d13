package spec

import (
	"fmt"
	"reflect"
	"strings"
)

// Field is a key of the job file.
type Field struct {
	Path    string // dotted, as in --set
	Type    string // in words, with bounds
	Doc     string
	Class   string   // d: decides the plan, r: run-time, c: compiled in; "" of a mapping
	Default string   // the default
	Example string   // a value, as in --set
	Enum    []string // the allowed values, nil if any
	// the values that planc supports; nil: all; only NoneSupported: none
	Supported []string
	Group     bool // a mapping, whose fields follow
}

// NoneSupported stands alone in Field.Supported if planc supports no value yet.
const NoneSupported = "-"

// Fields returns the keys of the job file in its order. A mapping precedes its fields.
func Fields() []Field { return fieldsOf(reflect.ValueOf(*defaults()), "", "") }

// fieldsOf returns the keys of a struct whose values are the defaults. A struct's class applies to its fields.
func fieldsOf(v reflect.Value, path, class string) (out []Field) {
	for i := range v.NumField() {
		f, tag := v.Type().Field(i), v.Type().Field(i).Tag
		key := tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		row := Field{Path: strings.TrimPrefix(path+"."+key, "."), Type: typeWords(f.Type, tag), Doc: tag.Get("doc"),
			Class:   tag.Get("class"),
			Example: tag.Get("eg"), Enum: words(tag.Get("enum")),
			Supported: words(tag.Get("now")), Group: isGroup(f.Type)}
		if row.Class == "" {
			row.Class = class
		}
		if alias := tag.Get("alias"); alias != "" {
			row.Doc += "; also called " + alias
		}
		row.Default = tag.Get("absent")
		if row.Default == "" && !row.Group && !v.Field(i).IsZero() {
			row.Default = strings.ReplaceAll(fmt.Sprint(v.Field(i)), " ", ", ")
		}
		out = append(out, row)
		if row.Group {
			out = append(out, fieldsOf(v.Field(i), row.Path, row.Class)...)
		}
	}
	return out
}

// typeNames are the types that accept more than one form.
var typeNames = map[reflect.Type]string{
	reflect.TypeFor[ModelRef]():   "name, path or mapping",
	reflect.TypeFor[ClusterRef](): "name or mapping",
	reflect.TypeFor[Precision]():  "name or mapping",
	reflect.TypeFor[LossScale]():  "none, dynamic, a number, or a mapping",
	reflect.TypeFor[Sources]():    "path, {path, weight}, or a list of them",
	reflect.TypeFor[Valid]():      "fraction, or as train",
}

// typeWords describes in words which values a field takes.
func typeWords(t reflect.Type, tag reflect.StructTag) string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	if strings.HasPrefix(t.Name(), "Pin[") {
		return typeWords(t.Field(0).Type.Elem(), tag) + ", or a list"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeWords(t.Elem(), tag)
	case reflect.Array:
		return fmt.Sprintf("%d of: %s", t.Len(), typeWords(t.Elem(), tag))
	case reflect.Struct:
		return "mapping"
	case reflect.Slice:
		return "list of: " + typeWords(t.Elem(), tag)
	case reflect.Map:
		return "mapping to: " + typeWords(t.Elem(), tag)
	case reflect.Float64:
		return "number" + Bounds(tag)
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer" + Bounds(tag)
	case reflect.String:
		if tag.Get("enum") != "" {
			return "one of " + strings.ReplaceAll(tag.Get("enum"), ",", ", ")
		}
	}
	return t.Kind().String()
}

// Bounds returns the bounds that a field's tags set, such as " > 0" or " 1 to 4096"; "" if there are none.
func Bounds(tag reflect.StructTag) string {
	low, high := tag.Get("min"), tag.Get("max")
	if low != "" && high != "" {
		return " " + low + " to " + high
	}
	out := ""
	for _, b := range []struct{ tag, sign string }{{"over", " > "}, {"min", " ≥ "}, {"under", " < "}, {"max", " ≤ "}} {
		if x := tag.Get(b.tag); x != "" {
			out += b.sign + x
		}
	}
	return out
}

// isGroup reports whether a type is a mapping: a struct with keys.
func isGroup(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" && key != "-" {
			return true
		}
	}
	return false
}

func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
