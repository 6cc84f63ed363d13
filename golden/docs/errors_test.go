package docs_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// codeFolders are the folders that declare error codes.
var codeFolders = []string{"ir/spec", "ir/spec/strict", "costmodel", "passes/search",
	"passes/search/space", "cmd/planc",
	"cmd/planc/internal/lock", "cmd/planc/internal/otherinput", "interop/migrate"}

// codeDoc is the documentation of an error code, from the comment on its constant. Tests next to the constants run the
// example.
type codeDoc struct{ code, reported, exit, example string }

// codeTable returns the table of all error codes.
func codeTable(string) []string {
	byCode := map[string]codeDoc{}
	for _, folder := range codeFolders {
		for _, d := range codesOf(folder) {
			if first, twice := byCode[d.code]; twice {
				if first.reported != d.reported {
					d.reported = first.reported + "; " + d.reported
				}
				d.example = cmp.Or(first.example, d.example)
			}
			byCode[d.code] = d
		}
	}
	out := table("code", "reported", "exit", "example")
	for _, name := range slices.Sorted(maps.Keys(byCode)) {
		d := byCode[name]
		out = append(out, harness.TableRow(code(d.code), d.reported, d.exit, d.example))
	}
	return out
}

// codesOf returns the documentation of a folder's constants of type ir.Code.
func codesOf(folder string) (docs []codeDoc) {
	files, err := filepath.Glob(filepath.Join(harness.Root, folder, "*.go"))
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				docs = append(docs, codesIn(g)...)
			}
		}
	}
	return docs
}

func codesIn(g *ast.GenDecl) (docs []codeDoc) {
	for _, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		if t, ok := spec.Type.(*ast.SelectorExpr); !ok || t.Sel.Name != "Code" {
			continue
		}
		comment := spec.Doc
		if comment == nil {
			comment = g.Doc
		}
		docs = append(docs, readCode(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`), comment.Text()))
	}
	return docs
}

// readCode parses "X is reported for Y. Exit 3.\n\nExample:\n\tZ".
func readCode(name, comment string) codeDoc {
	d := codeDoc{code: name, exit: "2"}
	text, example, _ := strings.Cut(comment, "Example:\n")
	text = strings.Join(strings.Fields(text), " ")
	if before, exit, found := strings.Cut(text, " Exit "); found {
		text, d.exit = before, strings.TrimSuffix(exit, ".")
	}
	_, reported, found := strings.Cut(strings.TrimSuffix(text, "."), " is reported ")
	if !found {
		panic("the comment on the code " + name + " must say when it \"is reported\"")
	}
	d.reported = reported
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(example)) {
		lines = append(lines, code(strings.TrimSpace(line)))
	}
	d.example = strings.Join(lines, "<br>")
	return d
}
