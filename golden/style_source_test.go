package golden_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// A source is a Go file of the module, whatever its build tags.
type source struct {
	path      string // from the module's root, with slashes
	text      []byte
	set       *token.FileSet
	file      *ast.File
	generated bool
}

func (s *source) dir() string { return path.Dir(s.path) }
func (s *source) test() bool  { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) lines() int  { return bytes.Count(s.text, []byte("\n")) }

// held reports whether the house rules about source hold for the file: not for tests and generated files.
func (s *source) held() bool { return !s.test() && !s.generated }

func (s *source) room() string {
	if s.dir() == deviceRoom {
		return deviceRoom
	}
	return strings.Split(s.path, "/")[0]
}

func (s *source) imports() (paths []string) {
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

const repoRoot = ".."

// walkTree walks the module's files, without folders that go ignores or that are modules of their own.
func walkTree(visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(repoRoot), ".", func(name string, d fs.DirEntry, err error) error {
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
		if _, err := os.Stat(filepath.Join(repoRoot, name, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
}

var loadSources = sync.OnceValues(func() (list []*source, err error) {
	set := token.NewFileSet()
	return list, walkTree(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		s := &source{path: name, set: set}
		var err error
		s.text, err = os.ReadFile(filepath.Join(repoRoot, name))
		if err != nil {
			return err
		}
		s.file, err = parser.ParseFile(set, name, s.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.generated = ast.IsGenerated(s.file)
		list = append(list, s)
		return nil
	})
})

func sources(t *testing.T) []*source {
	t.Helper()
	list, err := loadSources()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// docPages are the module's Markdown files by path.
func docPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := walkTree(func(name string) error {
		if path.Ext(name) != ".md" {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(repoRoot, name))
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// pageWidth is how wide a page's prose is at most. Tables, code and what is made from tables may be wider.
const pageWidth = 131

var made = regexp.MustCompile(`(?s)<!-- (table|validate) .*?<!-- end|(?m:^(?:\x60\x60\x60).*?^\x60\x60\x60)`)

// Prose of pages is wrapped, so that a change of a sentence is a change of its lines.
func TestPagesWrap(t *testing.T) {
	for name, text := range docPages(t) {
		if name == cliPage { // in the words of help, whose lines are its own
			continue
		}
		text = made.ReplaceAllStringFunc(text, func(s string) string {
			return strings.Repeat("\n", strings.Count(s, "\n"))
		})
		at := 0
		for line := range strings.Lines(text) {
			at++
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > pageWidth && strings.ContainsRune(line,
				' ') && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s:%d: %d characters; prose is wrapped at %d", name, at, n, pageWidth)
			}
		}
	}
}
