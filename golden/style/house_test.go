// Package style_test holds the source and the pages to the house rules: docs/style.md, docs/words.md, the import table
// and the limits on sizes.
package style_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/golden/quickfuzz"
)

// Every package says what it is for.
func TestPackageDocs(t *testing.T) {
	doc := map[string]bool{}
	for _, s := range harness.Sources(t) {
		if s.IsTest() {
			continue
		}
		text := s.File.Doc.Text()
		opens := strings.HasPrefix(text, "Package "+s.File.Name.Name+" ") || s.File.Name.Name == "main" && text != ""
		doc[s.Dir()] = doc[s.Dir()] || opens || s.Generated
	}
	for _, dir := range slices.Sorted(maps.Keys(doc)) {
		if !doc[dir] {
			t.Errorf("%s: no file opens with a comment \"Package %s …\"; put it in doc.go", dir, filepath.Base(dir))
		}
	}
}

// A size is the length of something in lines.
type size struct {
	what  string
	lines int
}

// A budget bounds sizes: their median, nine in ten of them, and each.
type budget struct{ median, p90, max int }

func (b budget) check(t *testing.T, kind string, sizes []size) {
	t.Helper()
	if len(sizes) == 0 {
		return
	}
	slices.SortFunc(sizes, func(a, b size) int { return a.lines - b.lines })
	median, p90, last := sizes[len(sizes)/2].lines, sizes[len(sizes)*9/10].lines, sizes[len(sizes)-1]
	t.Logf("%d %s: median %d of %d lines, 90th percentile %d of %d, longest %d of %d (%s)",
		len(sizes), kind, median, b.median, p90, b.p90, last.lines, b.max, last.what)
	if median > b.median || p90 > b.p90 {
		t.Errorf("%s have grown: median %d and 90th percentile %d, the budget is %d and %d", kind, median, p90,
			b.median, b.p90)
	}
	for _, s := range sizes {
		if s.lines > b.max {
			t.Errorf("%s: %d lines, none of the %s has more than %d", s.what, s.lines, kind, b.max)
		}
	}
}

// Files and functions stay small. Tables may be long: variables, and functions that only return a literal.
func TestBudget(t *testing.T) {
	var files, funcs []size
	for _, s := range harness.Sources(t) {
		if s.HasBudget() {
			files = append(files, size{s.Path, s.Lines()})
			funcs = append(funcs, functions(s)...)
		}
	}
	budget{150, 400, 600}.check(t, "files", files)
	budget{10, 40, 80}.check(t, "functions", funcs)
}

// functions are the declared functions of a file, and the literals outside of them.
func functions(s *harness.Source) (sizes []size) {
	add := func(n ast.Node, name string) {
		from, to := s.Set.Position(n.Pos()), s.Set.Position(n.End())
		sizes = append(sizes, size{fmt.Sprintf("%s:%d %s", s.Path, from.Line, name), to.Line - from.Line + 1})
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil && !isTable(n.Body) {
				add(n, n.Name.Name)
			}
			return false
		case *ast.FuncLit:
			add(n, "a function literal")
			return false
		}
		return true
	})
	return sizes
}

// isTable reports whether a function does nothing but return a literal.
func isTable(body *ast.BlockStmt) bool {
	if len(body.List) != 1 {
		return false
	}
	ret, ok := body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return false
	}
	_, ok = ret.Results[0].(*ast.CompositeLit)
	return ok
}

func TestGofmt(t *testing.T) {
	for _, s := range harness.Sources(t) {
		if want, err := format.Source(s.Text); err != nil || !bytes.Equal(want, s.Text) {
			t.Errorf("%s is not as gofmt prints it", s.Path)
		}
	}
}

// generatedFiles names, for each generated file of the repository (a pattern of path.Match), the test that makes the
// file again and compares: "folder.TestName".
var generatedFiles = map[string]string{
	"docs/job.schema.json":        "ir/spec.TestSchemaIsCurrent",
	"docs/ops.md":                 "golden/docs.TestOpsPage",
	"runtime/cpu/asm/z*_amd64.go": "tools/avo.TestCurrent",
	"runtime/vec/z*_amd64.go":     "tools/avo/vector.TestCurrent",
	"bench/gemm/z*_amd64.go":      "tools/avo.TestCurrent",
}

// A generated file says so in the words that tools look for, and a test holds it up to date.
func TestGeneratedFiles(t *testing.T) {
	for _, s := range harness.Sources(t) {
		head := s.Text[:s.Set.Position(s.File.Package).Offset]
		if !s.Generated && looseHeader.Match(head) {
			t.Errorf("%s: tools do not see that it is generated; its header must be \"// Code generated … DO NOT "+
				"EDIT.\"", s.Path)
		}
		if s.Generated && !slices.ContainsFunc(slices.Collect(maps.Keys(generatedFiles)), func(pattern string) bool {
			ok, err := filepath.Match(pattern, s.Path)
			return err == nil && ok
		}) {
			t.Errorf("%s: no row of generatedFiles, in golden/style/house_test.go, names the test that holds it "+
				"up to date",
				s.Path)
		}
	}
	for pattern, name := range generatedFiles {
		if files, err := filepath.Glob(filepath.Join(harness.Root, pattern)); err != nil || len(files) == 0 {
			t.Errorf("generatedFiles: no file is %s", pattern)
		}
		if dir, test, _ := strings.Cut(name, "."); !declares(t, dir, test) {
			t.Errorf("generatedFiles: no test %s in %s", test, dir)
		}
	}
}

var looseHeader = regexp.MustCompile(`(?i)(^|\n)//\s*(this )?(code|file) (is |was )?(auto-?)?generated|DO NOT EDIT`)

// declares reports whether a test file of the folder, which may be of the module tools, declares the function.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte("\nfunc "+name+"(t *testing.T) {"))
	})
}

// docs/dependencies.md gives the reason for each module that go.mod requires, and for no other.
func TestDependenciesExplained(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(harness.Root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	page := harness.DocPages(t)["docs/dependencies.md"]
	var required, explained []string
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+) v\S+$`).FindAllStringSubmatch(string(mod),
		-1) {
		required = append(required, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^- \*\*(\S+)\*\*`).FindAllStringSubmatch(page, -1) {
		explained = append(explained, m[1])
	}
	slices.Sort(required)
	slices.Sort(explained)
	if len(required) == 0 || !slices.Equal(required, explained) {
		t.Errorf("go.mod requires, without an // indirect,\n%q\ndocs/dependencies.md explains\n%q", required, explained)
	}
}

// On platforms of 32 bits nothing is wrong but that planc says it is not for them.
func TestThirtyTwoBits(t *testing.T) {
	harness.ForPlatforms(t)
	cmd := exec.Command("go", "build", "-o", os.DevNull, "./cmd/planc")
	cmd.Dir, cmd.Env = harness.Root, append(os.Environ(), "GOOS=linux", "GOARCH=386", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); err == nil || len(lines) != 2 ||
		!strings.Contains(lines[1], "planc_runs_on_64_bit_platforms_only") {
		t.Errorf("GOARCH=386 go build: %v\n%s", err, out)
	}
}

// The compiler plans in a browser too.
func TestBuildsForBrowser(t *testing.T) {
	harness.ForPlatforms(t)
	patterns := map[string]string{"ir": "./ir/...", "costmodel": "./costmodel/...", "passes": "./passes/...",
		"planner": "./planner/...",
		"codegen": "./codegen"}
	args := []string{"build"}
	for _, s := range harness.Sources(t) {
		if p := patterns[s.Folder()]; p != "" && s.HasBudget() && (s.Folder() != "codegen" || s.Dir() == "codegen") &&
			!slices.Contains(args, p) {
			args = append(args, p)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = harness.Root, append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("GOOS=js GOARCH=wasm go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Packages with fuzz targets import quickfuzz, without which the go command spends minutes on making one input smaller.
func TestFuzzTargetsAreQuick(t *testing.T) {
	const quick = modulePath + "/golden/quickfuzz"
	targets, imports := map[string]bool{}, map[string]bool{}
	for _, s := range harness.Sources(t) {
		if !s.IsTest() {
			continue
		}
		targets[s.Dir()] = targets[s.Dir()] || bytes.Contains(s.Text, []byte("\nfunc Fuzz"))
		imports[s.Dir()] = imports[s.Dir()] || slices.Contains(s.Imports(), quick)
	}
	found := 0
	for dir, has := range targets {
		if !has {
			continue
		}
		found++
		if !imports[dir] {
			t.Errorf("%s has fuzz targets: its tests import _ %q", dir, quick)
		}
	}
	if found < 8 {
		t.Errorf("fuzz targets in %d packages", found)
	}
	if f := flag.Lookup("test.fuzzminimizetime"); f == nil || f.DefValue == quickfuzz.Minimize ||
		f.Value.String() != quickfuzz.Minimize {
		t.Errorf("the time of minimizing is %v", f)
	}
}
