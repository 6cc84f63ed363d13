package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/ir"
)

// generatedSuffix ends the names of generated files.
const generatedSuffix = "_planc.go"

// codeNameTaken is reported for a name that is in use already: in the package, or by another job's code or lock.
const codeNameTaken ir.Code = "NameTaken"

// target describes the file that gen writes.
type target struct {
	folder string      // folder of the job and its lock
	job    string      // path of the job relative to dir, with slashes
	dir    string      // folder of the generated file
	key    string      // path of the generated file relative to folder, with slashes
	pkg    string      // package name
	main   bool        // the file has a func main
	others []*ast.File // other files of the package, without tests
	set    *token.FileSet
}

// findTarget determines the file and the package of a job's generated code.
func findTarget(j *loaded, l *lock.Job, r genRequest) (*target, error) {
	t := &target{folder: filepath.Dir(j.path), dir: r.out, main: r.main, set: token.NewFileSet()}
	if t.dir == "" {
		t.dir = t.folder
	}
	name := fileName(j.path)
	rel, err := relativePath(t.folder, filepath.Join(t.dir, name))
	if err != nil {
		return nil, err
	}
	t.key = rel
	t.job, err = relativePath(t.dir, j.path)
	if err != nil {
		return nil, err
	}
	if err := t.readOthers(name); err != nil {
		return nil, err
	}
	t.pkg = t.packageName(l)
	if t.main && t.pkg != "main" {
		return nil, inputErrorf(BadFlag, "",
			"--main needs package main, and the package in %s is %s; choose another folder with -o DIR",
			shell.Slashed(t.dir),
			t.pkg)
	}
	return t, nil
}

// relativePath returns a path relative to a folder, with slashes on every platform.
func relativePath(folder, path string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

// fileName returns the name of the generated file: X_planc.go for a job X.yaml, without characters that the go command
// rejects.
func fileName(job string) string {
	base := strings.TrimSuffix(filepath.Base(job), filepath.Ext(job))
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, base)
	clean = strings.TrimLeft(clean, "._")
	if clean == "" { // Go ignores files whose names begin with "_" or "."
		clean = "job"
	}
	return clean + generatedSuffix
}

// readOthers parses the other files of the package.
func (t *target) readOthers(name string) error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil // the folder is created later
	}
	for _, e := range entries {
		n := e.Name()
		if e.IsDir() || n == name || !strings.HasSuffix(n, ".go") || strings.HasSuffix(n, "_test.go") ||
			strings.HasPrefix(n, ".") || strings.HasPrefix(n, "_") {
			continue
		}
		if !isBuilt(t.dir, n) {
			continue
		}
		path := filepath.Join(t.dir, n)
		if strings.HasSuffix(n, generatedSuffix) && isGenerated(path) {
			return ir.Diags{{Pos: ir.Pos{File: shell.Slashed(path)}, Code: codeNameTaken,
				Msg: fmt.Sprintf("this package contains the training code of another job, and a package can contain "+
					"only one; generate %s into another folder with -o DIR, or remove this file", name)}}
		}
		if f, err := parser.ParseFile(t.set, shell.Slashed(path), nil, parser.SkipObjectResolution); f != nil &&
			(err == nil || f.Name != nil) {
			t.others = append(t.others, f)
		}
	}
	return nil
}

// isBuilt reports whether the go command compiles a file on any platform of planc's programs. A program that go
// generate runs is often in the same folder, with the constraint ignore, and belongs to another package.
func isBuilt(dir, name string) bool {
	c := build.Context{Compiler: "gc", CgoEnabled: true, ReleaseTags: build.Default.ReleaseTags}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, tags := range [][]string{nil, {"cuda"}} {
				c.GOOS, c.GOARCH, c.BuildTags = system, arch, tags
				match, err := c.MatchFile(dir, name)
				if match || err != nil { // the parser reports what is wrong with the file
					return true
				}
			}
		}
	}
	return false
}

// packageName returns the package of the existing files; otherwise $GOPACKAGE if go generate runs in the target's
// folder; otherwise the package in the lock; otherwise a name derived from the folder's name.
func (t *target) packageName(l *lock.Job) string {
	for _, f := range t.others {
		if name := f.Name.Name; name != "" && name != "_" && name != "documentation" {
			return name
		}
	}
	if here, err := filepath.Abs("."); err == nil {
		if dir, err := filepath.Abs(t.dir); err == nil && dir == here && os.Getenv("GOPACKAGE") != "" {
			return strings.TrimSuffix(os.Getenv("GOPACKAGE"), "_test")
		}
	}
	switch {
	case t.main:
		return "main"
	case l.File != nil && l.File.Files[t.key] != "" && l.File.Gen.Package != "" && !l.File.Gen.Main:
		return l.File.Gen.Package
	}
	dir, err := filepath.Abs(t.dir)
	if err != nil {
		dir = t.dir
	}
	return packageOf(filepath.Base(dir))
}

// packageOf returns a valid package name for a folder's name.
func packageOf(folder string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return unicode.ToLower(r)
		}
		return -1
	}, folder)
	name = strings.TrimSuffix(strings.TrimLeftFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }), "_test")
	if name == "" || token.IsKeyword(name) || name == "main" || name == "documentation" { // invalid, or special for Go
		return "train"
	}
	return name
}

// check reports an error if the file was not generated by planc, or if the package already declares names that the
// generated code declares.
func (t *target) check(src []byte) error {
	path := filepath.Join(t.folder, filepath.FromSlash(t.key))
	if err := errors.Join(generatedOrNew(path), t.checkOwner(path)); err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), t.key, src, parser.SkipObjectResolution)
	if err != nil {
		panic("planc: generated Go does not parse: " + err.Error())
	}
	mine, imports := declaredNames(file)
	var diags ir.Diags
	for _, f := range t.others {
		declared, imported := declaredNames(f)
		for name, pos := range imported {
			if _, clash := mine[name]; clash {
				declared[name] = pos
			}
		}
		for name, pos := range declared {
			_, declares := mine[name]
			_, uses := imports[name]
			if !declares && !uses {
				continue
			}
			at := t.set.Position(pos)
			diags = append(diags, ir.Diag{Pos: ir.Pos{File: at.Filename, Line: at.Line, Column: at.Column},
				Code: codeNameTaken,
				Msg: fmt.Sprintf("%s is declared here and in the generated code; generate into another folder with "+
					"-o DIR", name)})
		}
	}
	slices.SortFunc(diags, func(a, b ir.Diag) int { return strings.Compare(a.Msg, b.Msg) })
	return diags.Err()
}

// jobOfCode matches the path of the job in the header of generated code.
var jobOfCode = regexp.MustCompile(`(?m)^// Job .*\((.*)\): model `)

// checkOwner reports an error if the file was generated from another job that still exists. Two jobs can have the same
// file name, because some characters are replaced, and because several jobs can use one folder.
func (t *target) checkOwner(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // there is no such file
	}
	at := jobOfCode.FindSubmatchIndex(text)
	if at == nil {
		return nil
	}
	dir := filepath.Dir(path)
	theirs := filepath.Join(dir, filepath.FromSlash(string(text[at[2]:at[3]])))
	if missing(theirs) || sameFile(theirs, filepath.Join(dir, filepath.FromSlash(t.job))) {
		return nil
	}
	return ir.Diags{{Pos: ir.Pos{File: shell.Slashed(path), Line: 1 + strings.Count(string(text[:at[0]]), "\n"),
		Column: 1},
		Code: codeNameTaken,
		Msg: fmt.Sprintf("this is the training code of %s; generate the code of this job into another folder with "+
			"-o DIR, or rename the job", shell.Slashed(theirs))}}
}

// sharedLock reports an error if the job would share its lock with another job: X.yaml and X.yml would both have
// X.lock.
func sharedLock(path string) error {
	if lock.PathOf(path) == "" {
		return nil
	}
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(path, ext)
	for _, e := range lockedExtensions {
		if e == ext {
			break
		}
		if first := stem + e; !missing(first) && looksLikeJob(first) && !sameFile(first, path) {
			return ir.Diags{{Pos: ir.Pos{File: shell.Slashed(path)}, Code: codeNameTaken,
				Msg: fmt.Sprintf("%s is the lock of %s and would also be the lock of this job; rename one of the jobs",
					shell.Slashed(lock.PathOf(path)), shell.Slashed(first))}}
		}
	}
	return nil
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// declaredNames returns the names that a file declares in its package, and the names of its imports.
func declaredNames(f *ast.File) (declared, imported map[string]token.Pos) {
	declared, imported = map[string]token.Pos{}, map[string]token.Pos{}
	add := func(id *ast.Ident) {
		if id.Name != "_" && id.Name != "init" {
			declared[id.Name] = id.Pos()
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
	for _, i := range f.Imports {
		name := strings.Trim(i.Path.Value, "\"`")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = i.Pos()
	}
	return declared, imported
}
