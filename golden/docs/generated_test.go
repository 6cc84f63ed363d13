package docs_test

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/passes"
)

const generatedPage = "docs/generated.md"

// docs/generated.md lists all options of the runtime, and its source interfaces as they are declared.
func TestGeneratedPage(t *testing.T) {
	page := harness.DocPages(t)[generatedPage]
	options, methods := runtimeOptions(t)
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `rt\\.(\\w+)\\(").FindAllStringSubmatch(page, -1) {
		listed[m[1]] = true
	}
	if !maps.Equal(listed, options) {
		t.Errorf("%s lists the options %v, the runtime has %v", generatedPage, listed, options)
	}
	for _, name := range sourceTypes {
		_, text, _ := strings.Cut(page, "type "+name+" interface {\n")
		text, _, _ = strings.Cut(text, "}")
		shown := map[string]bool{}
		for line := range strings.Lines(text) {
			if method, _, ok := strings.Cut(strings.TrimSpace(line), "("); ok {
				shown[method] = true
			}
		}
		if !maps.Equal(shown, methods[name]) || len(methods[name]) == 0 {
			t.Errorf("%s shows rt.%s with the methods %v, it has %v", generatedPage, name, shown, methods[name])
		}
	}
}

// feedFolder declares the interfaces of which package runtime has aliases.
const feedFolder = "runtime/feed"

// sourceTypes are the interfaces through which a program provides its own batches.
var sourceTypes = []string{"Source", "TypedSource", "DocumentSource", "ImageSource"}

// runtimeOptions returns the functions of the runtime that return an Option, and the methods of the source interfaces.
func runtimeOptions(t *testing.T) (options map[string]bool, methods map[string]map[string]bool) {
	options, methods = map[string]bool{}, map[string]map[string]bool{}
	for _, s := range harness.Sources(t) {
		if s.Dir() != "runtime" && s.Dir() != feedFolder || s.IsTest() {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if r := n.Type.Results; s.Dir() == "runtime" && n.Name.IsExported() && r != nil && len(r.List) == 1 &&
					isName(r.List[0].Type, "Option") {
					options[n.Name.Name] = true
				}
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && slices.Contains(sourceTypes, n.Name.Name) {
					methods[n.Name.Name] = map[string]bool{}
					for _, m := range i.Methods.List {
						methods[n.Name.Name][m.Names[0].Name] = true
					}
				}
			}
			return true
		})
	}
	return options, methods
}

// The tour has a section for every pass.
func TestTourStops(t *testing.T) {
	stops := sections(harness.DocPages(t)["docs/tour.md"])
	for _, p := range passes.All {
		if _, ok := stops[p.Name]; !ok {
			t.Errorf("docs/tour.md has no section %q", p.Name)
		}
	}
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
