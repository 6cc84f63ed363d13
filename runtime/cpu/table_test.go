package cpu

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
)

func TestTableIsFull(t *testing.T) {
	full(t, reflect.ValueOf(Table[float32]()).Elem())
	full(t, reflect.ValueOf(Table[float64]()).Elem())
}

func full(t *testing.T, v reflect.Value) {
	for g := range v.NumField() {
		group := v.Field(g)
		for i := range group.NumField() {
			if group.Field(i).IsNil() {
				t.Errorf("%v has no %s", v.Type(), group.Type().Field(i).Name)
			}
		}
	}
}

// A kernel's comment contains its loop: an indented line after "Name computes" or the like.
func TestKernelsDocumentTheirLoops(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		s, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s.Name.Name == "Kernels" {
			return false
		}
		for _, field := range s.Type.(*ast.StructType).Fields.List {
			n++
			doc, name := field.Doc.Text(), field.Names[0].Name
			if !strings.HasPrefix(doc, name+" computes") || !strings.Contains(doc, "\n\tfor ") {
				t.Errorf("%s is not documented by its loop", name)
			}
		}
		return false
	})
	want := 0
	for g := range reflect.TypeFor[Kernels[float32]]().NumField() {
		want += reflect.TypeFor[Kernels[float32]]().Field(g).Type.NumField()
	}
	if n != want {
		t.Errorf("saw %d kernels, want %d", n, want)
	}
}

func TestTableOfOtherTypePanics(t *testing.T) {
	type half float32
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Table[half]()
}
