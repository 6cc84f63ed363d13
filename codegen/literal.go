package codegen

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/runtime/program"
)

// literals prints Go values as composite literals of their own types.
type literals struct {
	group func(i int) jen.Code // names a group by its index; nil: by number
}

// literal prints a Go value as a composite literal, without fields that are zero.
func literal(v any) jen.Code { return literals{}.value(reflect.ValueOf(v)) }

// constants are the names of values that generated code does not write as numbers.
var constants = map[any]string{
	program.F32: "F32", program.F64: "F64", program.BF16: "BF16", program.F16: "F16",
	program.AdamW: "AdamW", program.Adam: "Adam", program.SGD: "SGD",
	program.Zeros: "Zeros", program.Ones: "Ones", program.Normal: "Normal",
}

// constantName returns the name of a value that is not written as a number.
func constantName(v reflect.Value) (string, bool) {
	if !v.CanUint() {
		return "", false
	}
	name, ok := constants[v.Interface()]
	return name, ok
}

// onOneLine are the types of short rows of long tables.
var onOneLine = map[reflect.Type]bool{reflect.TypeFor[program.Place](): true, reflect.TypeFor[program.Piece](): true,
	reflect.TypeFor[program.LayerRun](): true, reflect.TypeFor[program.Region](): true,
	reflect.TypeFor[program.FirstWrite](): true, reflect.TypeFor[program.GEMM](): true,
	reflect.TypeFor[program.Ref](): true,
	reflect.TypeFor[program.Dim](): true, reflect.TypeFor[program.Axis](): true, reflect.TypeFor[program.Init](): true}

// groupFields are the fields that hold a group's index.
var groupFields = map[string]bool{"Tokens": true, "Loss": true, "World": true, "Reduce": true, "Sum": true,
	"Shard": true}

func (l literals) value(v reflect.Value) *jen.Statement {
	if name, ok := constantName(v); ok {
		return rt(name)
	}
	switch v.Kind() {
	case reflect.Struct:
		return typeName(v.Type()).Add(l.body(v))
	case reflect.Slice, reflect.Array:
		return typeName(v.Type()).ValuesFunc(func(g *jen.Group) {
			for i := range v.Len() {
				if e := v.Index(i); e.Kind() == reflect.Struct {
					g.Add(l.body(e))
				} else {
					g.Add(l.value(e))
				}
			}
		})
	case reflect.String:
		return text(v.String())
	case reflect.Bool:
		return jen.Lit(v.Bool())
	case reflect.Float64:
		return jen.Lit(v.Float())
	}
	if v.CanInt() {
		return jen.Lit(int(v.Int()))
	}
	if v.CanUint() {
		return jen.Lit(v.Uint())
	}
	panic(fmt.Sprintf("codegen: no literal of %v", v.Type()))
}

// text is a string as people would write it.
func text(s string) *jen.Statement {
	if strings.Contains(s, "\n") && !strings.Contains(s, "`") {
		return jen.Id("`" + s + "`")
	}
	return jen.Lit(s)
}

// body prints a struct's fields in braces.
func (l literals) body(v reflect.Value) *jen.Statement {
	if !onOneLine[v.Type()] {
		return jen.Values(l.fields(v))
	}
	return jen.ValuesFunc(func(g *jen.Group) {
		for i := range v.NumField() {
			f := v.Field(i)
			if _, constant := constantName(f); constant || !f.IsZero() {
				g.Id(v.Type().Field(i).Name).Op(":").Add(l.value(f))
			}
		}
	})
}

// fields prints a struct's fields. Those that are zero are left out, except for groups and constants, of which 0 is
// one.
func (l literals) fields(v reflect.Value) jen.Dict {
	d := jen.Dict{}
	for i := range v.NumField() {
		f, field := v.Field(i), v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		_, constant := constantName(f)
		switch {
		case l.group != nil && groupFields[field.Name] && f.Kind() == reflect.Int && hasGroups[v.Type()]:
			d[jen.Id(field.Name)] = l.group(int(f.Int()))
		case !f.IsZero() || constant:
			d[jen.Id(field.Name)] = l.value(f)
		}
	}
	return d
}

// hasGroups are the types whose fields in groupFields are groups.
var hasGroups = map[reflect.Type]bool{reflect.TypeFor[program.Program](): true, reflect.TypeFor[program.Bucket](): true}

func typeName(t reflect.Type) *jen.Statement {
	switch {
	case t.Name() != "" && t.PkgPath() != "":
		return jen.Qual(rtPath(t.PkgPath()), t.Name())
	case t.Kind() == reflect.Slice:
		return jen.Index().Add(typeName(t.Elem()))
	case t.Kind() == reflect.Array:
		return jen.Index(jen.Lit(t.Len())).Add(typeName(t.Elem()))
	}
	return jen.Id(t.String())
}

// rtPath returns the package in which generated code finds a type: the runtime has the tables' types under their names.
func rtPath(path string) string {
	if path == reflect.TypeFor[program.Program]().PkgPath() {
		return RuntimePath
	}
	return path
}

// inline prints a composite literal's body on one line: names, and numbers or flags, in turn, without those that are 0
// or false.
func inline(fields ...any) jen.Code {
	return jen.ValuesFunc(func(v *jen.Group) {
		for i := 0; i < len(fields); i += 2 {
			if n := fields[i+1]; n != 0 && n != false {
				v.Id(fields[i].(string)).Op(":").Lit(n)
			}
		}
	})
}
