package harness

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Source is a Go file of the module, whatever its build tags.
type Source struct {
	Path      string // from the module's root, with slashes
	Text      []byte
	Set       *token.FileSet
	File      *ast.File
	Generated bool
}

// Dir returns the file's folder, from the module's root.
func (s *Source) Dir() string { return path.Dir(s.Path) }

// IsTest reports whether the file is a test.
func (s *Source) IsTest() bool { return strings.HasSuffix(s.Path, "_test.go") }

// Lines returns the number of the file's lines.
func (s *Source) Lines() int { return bytes.Count(s.Text, []byte("\n")) }

// HasBudget reports whether the limits on sizes hold for the file: they do not for tests and generated files.
func (s *Source) HasBudget() bool { return !s.IsTest() && !s.Generated }

// DeviceFolder is a folder inside runtime with imports of its own, as are the folders in it: programs link them only
// with the build tag cuda.
const DeviceFolder = "runtime/gpu"

// ContractFolder is the package that the compiler and the runtime share.
const ContractFolder = "runtime/program"

// Folder returns the row of the import table that the file belongs to: the folder at the module's root, [DeviceFolder]
// or [ContractFolder].
func (s *Source) Folder() string {
	dir := s.Dir()
	switch {
	case dir == ContractFolder:
		return dir
	case dir == DeviceFolder || strings.HasPrefix(dir, DeviceFolder+"/"):
		return DeviceFolder
	}
	folder, _, _ := strings.Cut(dir, "/")
	return folder
}

// Identifiers returns the names that the file uses.
func (s *Source) Identifiers() map[string]bool {
	names := map[string]bool{}
	ast.Inspect(s.File, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	return names
}

// Imports returns the paths that the file imports.
func (s *Source) Imports() (paths []string) {
	for _, i := range s.File.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// Root is the module's root, an absolute path.
var Root = moduleRoot()

// moduleRoot returns the nearest folder with a go.mod, from the folder of the test on upward.
func moduleRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("harness: no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// WalkTree walks the module's files, without folders that the go command ignores and without nested modules.
func WalkTree(visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(Root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return visit(name)
		case name == ".":
			return nil
		case strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" ||
			name == "runs":
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(Root, name, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
}

var loadSources = sync.OnceValues(func() (list []*Source, err error) {
	set := token.NewFileSet()
	return list, WalkTree(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		s := &Source{Path: name, Set: set}
		var err error
		s.Text, err = os.ReadFile(filepath.Join(Root, name))
		if err != nil {
			return err
		}
		s.File, err = parser.ParseFile(set, name, s.Text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.Generated = ast.IsGenerated(s.File)
		list = append(list, s)
		return nil
	})
})

// Sources returns the module's Go files.
func Sources(t *testing.T) []*Source {
	t.Helper()
	list, err := loadSources()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// DocPages returns the texts of the module's Markdown files by path.
func DocPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := WalkTree(func(name string) error {
		if path.Ext(name) != ".md" {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(Root, name))
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
