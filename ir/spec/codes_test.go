package spec

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// TestCodesHaveExamples compiles the example of each code's comment and wants that code.
func TestCodesHaveExamples(t *testing.T) {
	for _, file := range []string{"codes.go", "strict/codes.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			name := spec.Names[0].Name
			_, example, ok := strings.Cut(spec.Doc.Text(), "Example:\n")
			if !ok {
				t.Errorf("%s: %s has no example", file, name)
				return true
			}
			if codes := codesOf(t, strings.ReplaceAll(example, "\n\t", "\n")); !codes[ir.Code(name)] {
				t.Errorf("%s: the example of %s gives %v", file, name, codes)
			}
			return true
		})
	}
}

// codesOf are the codes of the input errors of a job file, or of an argument.
func codesOf(t *testing.T, example string) map[ir.Code]bool {
	t.Helper()
	example = strings.TrimPrefix(strings.TrimPrefix(example, "\n"), "\t")
	var overrides []Override
	if arg, ok := strings.CutPrefix(strings.TrimSpace(example), "--set "); ok {
		overrides, example = []Override{SetFlag(arg)}, small
	}
	_, err := Load("job.yaml", files{"job.yaml": example}.read, overrides...)
	var diags ir.Diags
	if !errors.As(err, &diags) {
		t.Errorf("%q gives %v", example, err)
	}
	codes := map[ir.Code]bool{}
	for _, d := range diags {
		codes[d.Code] = true
	}
	return codes
}
