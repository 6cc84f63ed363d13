package style_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// The limits that keep a package from being one object in many files (docs/style.md).
const (
	maxMethods      = 25 // of a type
	maxFields       = 20 // of a struct type
	maxParameters   = 6  // of a function
	maxPackageFiles = 40 // without tests and generated files
	maxWidth        = 120
	tabWidth        = 4
)

// excessFile lists what exceeds these limits today: for each kind and package, how many and the largest. Both numbers
// may only fall.
const excessFile = "testdata/excess.txt"

var updateExcess = flag.Bool("update-excess", false, "write "+excessFile+" again; its numbers may only fall")

// excess is what exceeds a limit in a package.
type excess struct{ count, largest int }

// Types, functions and packages keep to their limits, except for those listed, which may only become fewer and smaller.
func TestLimits(t *testing.T) {
	now := excesses(harness.Sources(t))
	if *updateExcess {
		var lines strings.Builder
		for _, k := range slices.Sorted(maps.Keys(now)) {
			fmt.Fprintf(&lines, "%s %d %d\n", k, now[k].count, now[k].largest)
		}
		if err := os.WriteFile(filepath.FromSlash(excessFile), []byte(lines.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(filepath.FromSlash(excessFile))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]excess{}
	for line := range strings.Lines(string(text)) {
		var kind, pkg string
		var e excess
		if _, err := fmt.Sscan(line, &kind, &pkg, &e.count, &e.largest); err != nil {
			t.Fatalf("%s: %q: %v", excessFile, line, err)
		}
		known[kind+" "+pkg] = e
	}
	for _, k := range slices.Sorted(maps.Keys(now)) {
		kind, _, _ := strings.Cut(k, " ")
		if e, was := now[k], known[k]; e.count > was.count || e.largest > was.largest {
			t.Errorf("%s: %d exceed the limit of %d, the largest has %d; at most %d may, with %d at most", k, e.count,
				limits[kind], e.largest, was.count, was.largest)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if now[k].count < known[k].count || now[k].largest < known[k].largest {
			t.Logf("%s has shrunk: go test ./golden/... -run TestLimits -update-excess", k)
		}
	}
}

var limits = map[string]int{"methods": maxMethods, "fields": maxFields, "parameters": maxParameters,
	"files": maxPackageFiles}

// excesses returns what exceeds a limit, by "kind package".
func excesses(all []*harness.Source) map[string]excess {
	methods, files := map[[2]string]int{}, map[string]int{}
	found := map[string]excess{}
	add := func(kind, pkg string, n int) {
		if n > limits[kind] {
			e := found[kind+" "+pkg]
			found[kind+" "+pkg] = excess{e.count + 1, max(e.largest, n)}
		}
	}
	for _, s := range all {
		if !s.HasBudget() {
			continue
		}
		dir := s.Dir()
		files[dir]++
		for _, d := range s.File.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[[2]string{dir, receiver(d)}]++
				}
				add("parameters", dir, d.Type.Params.NumFields())
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					ts, isType := spec.(*ast.TypeSpec)
					if !isType {
						continue
					}
					if st, ok := ts.Type.(*ast.StructType); ok {
						add("fields", dir, st.Fields.NumFields())
					}
				}
			}
		}
	}
	for of, n := range methods {
		add("methods", of[0], n)
	}
	for dir, n := range files {
		add("files", dir, n)
	}
	return found
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// A statement stands alone: an assignment or a call is not put in front of a condition. Definitions (:=) may be.
func TestOneStatementALine(t *testing.T) {
	for _, s := range harness.Sources(t) {
		if s.Generated || path.Base(s.Path) == "doc.go" {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			var init ast.Stmt
			switch n := n.(type) {
			case *ast.IfStmt:
				init = n.Init
			case *ast.SwitchStmt:
				init = n.Init
			}
			if a, ok := init.(*ast.AssignStmt); init != nil && (!ok || a.Tok != token.DEFINE) {
				at := s.Set.Position(init.Pos())
				t.Errorf("%s:%d: put the statement on a line of its own, before the condition", s.Path, at.Line)
			}
			return true
		})
	}
}

// Lines of code are at most 120 columns wide. Struct tags and the lines of raw strings have the width of what they
// hold.
func TestLineWidth(t *testing.T) {
	for _, s := range harness.Sources(t) {
		if s.Generated {
			continue
		}
		raw := rawLines(s)
		at := 0
		for line := range strings.Lines(string(s.Text)) {
			at++
			line = strings.TrimSuffix(line, "\n")
			width := utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
			if width > maxWidth && !raw[at] && strings.ContainsRune(strings.TrimSpace(line), ' ') {
				t.Errorf("%s:%d: %d columns; the limit is %d", s.Path, at, width, maxWidth)
			}
		}
	}
}

// rawLines returns the numbers of the lines that hold part of a raw string.
func rawLines(s *harness.Source) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.File, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.HasPrefix(l.Value, "`") {
			for i := s.Set.Position(l.Pos()).Line; i <= s.Set.Position(l.End()).Line; i++ {
				lines[i] = true
			}
		}
		return true
	})
	return lines
}
