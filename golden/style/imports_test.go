package style_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

const modulePath = "github.com/planc-dev/planc"

// A room is a folder at the module's root: what its packages may import of the others.
type room struct {
	imports []string // other rooms, or single packages of them; "*" is all
	std     bool     // apart from these, the standard library alone
	pure    bool     // and of that nothing that reaches files, the network or other processes
}

// rooms is the table of design.md. Files import along it whatever their build tags; tests import what they like.
var rooms = map[string]room{
	"ir":        {imports: []string{harness.ContractFolder}, pure: true},
	"costmodel": {imports: []string{"ir"}, pure: true},
	"passes":    {imports: []string{"ir", "costmodel"}, pure: true},
	// runtime/amount writes numbers, and imports the standard library alone
	"planner":              {imports: []string{"ir", "costmodel", "passes", "runtime/amount"}, pure: true},
	"interop":              {imports: []string{"ir", "costmodel", "planner"}, pure: true},
	"codegen":              {imports: []string{"ir", harness.ContractFolder}, pure: true},
	harness.ContractFolder: {std: true, pure: true},
	// it is embedded in planc and compiled anywhere, offline
	"runtime":            {imports: []string{harness.ContractFolder}, std: true},
	"cuda":               {imports: []string{"runtime"}},
	harness.DeviceFolder: {imports: []string{"cuda", "runtime"}},
	"bench":              {imports: []string{"runtime", "cuda"}},
	"cmd":                {imports: []string{"*"}},
	"golden":             {imports: []string{"*"}},
	"examples":           {imports: []string{"runtime", "cuda"}},
	"try":                {std: true}, // it is built before anything else, with an empty cache
}

// inner are packages that may import less than their folder: the packages that each may import, of ours.
var inner = map[string][]string{
	// texts of commands: they take values and return text; only package main joins them with I/O
	"cmd/planc/internal/layout":  {"runtime/fold"},
	"cmd/planc/internal/shell":   {},
	"cmd/planc/internal/process": {},
	"cmd/planc/internal/screen": {"cmd/planc/internal/layout", "cmd/planc/internal/lock", "costmodel",
		"costmodel/engines", "ir", "ir/spec", "passes/calibrate", "passes/search", "passes/search/price",
		"passes/validate", "planner", "planner/quantity", "runtime/amount"},
	"cmd/planc/internal/lock": {"costmodel", "ir", "ir/spec", "ir/spec/strict", "passes/search", "planner"},
	"costmodel":               {"ir", "ir/fusion", "ir/spec/strict"},
	"costmodel/engines":       {"ir", "costmodel"},
	"passes/search/space":     {"ir", "ir/spec", "costmodel", "costmodel/engines", "passes"},
	"passes/search/price":     {"ir", "ir/fusion", "costmodel", "costmodel/engines", "passes", "passes/search/space"},
}

// Packages with a row in inner import what it lists, and no more.
func TestInnerImports(t *testing.T) {
	met := map[string]bool{}
	for _, s := range harness.Sources(t) {
		allowed, ok := inner[s.Dir()]
		if !ok || s.IsTest() {
			continue
		}
		met[s.Dir()] = true
		for _, p := range s.Imports() {
			to, ours := strings.CutPrefix(p, modulePath+"/")
			if ours && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s; %s may import %s", s.Path, p, s.Dir(), strings.Join(allowed, ", "))
			}
		}
	}
	for pkg := range inner {
		if !met[pkg] {
			t.Errorf("inner has a row for %s, which does not exist", pkg)
		}
	}
}

// impure are the packages of a pure room that do touch the world, by decision.
var impure = []string{"codegen/build"}

var worldly = []string{"os", "os/exec", "os/signal", "os/user", "net", "net/http", "syscall", "io/ioutil"}

// No import runs against the table.
func TestNoBackArrows(t *testing.T) {
	for _, s := range harness.Sources(t) {
		if s.IsTest() {
			continue
		}
		row, ok := rooms[s.Folder()]
		if !ok {
			t.Errorf("%s: folder %s has no row in rooms, golden/style/imports_test.go", s.Path, s.Folder())
			continue
		}
		for _, p := range s.Imports() {
			if why := row.forbids(s, p); why != "" {
				t.Errorf("%s imports %s: %s", s.Path, p, why)
			}
		}
	}
}

// forbids says why a file of the room may not import a package, or nothing.
func (r room) forbids(s *harness.Source, path string) string {
	if to, ours := strings.CutPrefix(path, modulePath+"/"); ours {
		if slices.Contains(r.imports, to) {
			return ""
		}
		to = strings.Split(to, "/")[0]
		if to != s.Folder() && !slices.Contains(r.imports, to) && !slices.Contains(r.imports, "*") {
			return s.Folder() + " may not import " + to
		}
		return ""
	}
	standard := !strings.Contains(strings.Split(path, "/")[0], ".")
	switch {
	case r.std && !standard:
		return s.Folder() + " imports the standard library alone"
	case r.pure && slices.Contains(worldly, path) && !slices.Contains(impure, s.Dir()):
		return s.Folder() + " takes values and returns values; cmd and runtime touch the world"
	}
	return ""
}
