package laws_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// Each generated package compiles the runtime's generic functions for itself, which is two thirds of its code. The
// laws have hundreds of packages, and merge them into a few; only names change. TestCases and the scripts have
// separate packages, as users do.

// togetherPrograms is the number of programs per package: the compiler keeps two cores busy, and needs less memory
// than for all at once.
const togetherPrograms = 48

// rename is a place of a file where the text is replaced.
type rename struct {
	at, end int
	text    string
}

// together returns a module's files with its packages merged into a few; a top-level name of package X becomes
// name_X.
func together(t *testing.T, module string, files map[string][]byte) map[string][]byte {
	t.Helper()
	into := shared(files)
	out := map[string][]byte{}
	for name, src := range files {
		dir := path.Dir(name)
		if dir == "." {
			out[name] = renamed(t, src, func(f *ast.File) []rename { return calls(f, "planc.generated/"+module, into) })
			continue
		}
		out[into[dir]+"/"+dir+"_"+path.Base(name)] = renamed(t, src, func(f *ast.File) []rename {
			return ownNames(f, into[dir], "_"+dir)
		})
	}
	return out
}

// shared returns, for each package of a module, the package into which it is merged. Packages with the same types are
// merged, because a generic function is compiled once for each type in a package.
func shared(files map[string][]byte) map[string]string {
	types := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if dir := path.Dir(name); dir != "." {
			for _, elem := range []string{"num.BF16", "num.F16", "= float64\n"} {
				types[dir] += fmt.Sprint(bytes.Contains(files[name], []byte(elem)), " ")
			}
		}
	}
	dirs := slices.SortedFunc(maps.Keys(types), func(a, b string) int {
		return cmp.Or(cmp.Compare(types[a], types[b]), cmp.Compare(a, b))
	})
	into := map[string]string{}
	for i, dir := range dirs {
		into[dir] = fmt.Sprintf("g%d", i/togetherPrograms)
	}
	return into
}

// renamed returns src with the replacements that find returns for its file.
func renamed(t *testing.T, src []byte, find func(*ast.File) []rename) []byte {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	list := find(f)
	slices.SortFunc(list, func(a, b rename) int { return a.at - b.at })
	base, from := fset.File(f.Pos()).Base(), 0
	var out []byte
	for _, r := range list {
		out = append(append(out, src[from:r.at-base]...), r.text...)
		from = r.end - base
	}
	return append(out, src[from:]...)
}

func at(n ast.Node, text string) rename { return rename{int(n.Pos()), int(n.End()), text} }

// ownNames returns the places where a file uses one of its own top-level names, and its package's name.
func ownNames(f *ast.File, pkg, suffix string) []rename {
	list := []rename{at(f.Name, pkg)}
	fields := map[ast.Node]bool{} // keys of struct literals: no file has a top-level name like them
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					fields[kv.Key] = true
				}
			}
		case *ast.Ident:
			if !fields[n] && n.Name != "_" && n.Obj != nil && f.Scope.Objects[n.Name] == n.Obj {
				list = append(list, at(n, n.Name+suffix))
			}
		}
		return true
	})
	return list
}

// calls returns the places where a file of the module's main names one of its packages.
func calls(f *ast.File, module string, into map[string]string) []rename {
	var list []rename
	imported := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			pkg, ok := strings.CutPrefix(strings.Trim(n.Path.Value, `"`), module+"/")
			switch g := into[pkg]; {
			case !ok:
			case imported[g]:
				list = append(list, at(n, ""))
			default:
				imported[g] = true
				list = append(list, at(n, fmt.Sprintf("%q", module+"/"+g)))
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil && into[x.Name] != "" {
				list = append(list, at(n, into[x.Name]+"."+n.Sel.Name+"_"+x.Name))
			}
		}
		return true
	})
	return list
}

// Merging a program with others changes only its package's name and the suffixes of its own names. The laws compile
// the same code as users do.
func TestTogetherChangesNamesAlone(t *testing.T) {
	files, before := map[string][]byte{}, map[string]string{}
	for n := range uint64(3) {
		c := drawCase(1 + n*lawDrawsModel)
		c.id = fmt.Sprintf("d%d", n)
		src, _ := c.source(t)
		files[c.id+"/train.go"], before[c.id] = src, string(src)
	}
	after := together(t, "some", files)
	for id, src := range before {
		own := string(after["g0/"+id+"_train.go"])
		if names := strings.Count(own, "_"+id); names < 20 || strings.Contains(src, "_"+id) {
			t.Errorf("%s: %d places have a name of its own", id, names)
		}
		_, own, _ = strings.Cut(strings.ReplaceAll(own, "_"+id, ""), "\npackage g0\n")
		head, src, found := strings.Cut(src, "\npackage ")
		_, src, _ = strings.Cut(src, "\n")
		if !found || own != src {
			t.Errorf("%s: more than names changes behind %q", id, head)
		}
	}
}
