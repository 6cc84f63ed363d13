package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/planc-dev/planc/ir"
)

// generatedSuffix ends the names of generated files.
const generatedSuffix = "_planc.go"

// codeNameTaken is reported where a name is another's: of the package's own code, or of another job's code or lock.
const codeNameTaken ir.Code = "NameTaken"

// target is where and as what gen writes.
type target struct {
	folder string // of the job and its lock
	job    string // the job's path from dir, with slashes
	dir    string // of the generated file
	key    string // the file's path from folder, with slashes
	pkg    string
	main   bool
	others []*ast.File // of the package, but for tests and the generated file
	set    *token.FileSet
}

// findTarget says where a job's code goes, and of which package it is.
func findTarget(j *loaded, l *jobLock, r genRequest) (*target, error) {
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
			"--main makes a program, and the package of %s is %s; -o DIR names another folder", slashed(t.dir), t.pkg)
	}
	return t, nil
}

// relativePath is a path as seen from a folder, with slashes: the same on every machine.
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

// fileName is the generated file's: X_planc.go of a job X.yaml, as the go command can read it.
func fileName(job string) string {
	base := strings.TrimSuffix(filepath.Base(job), filepath.Ext(job))
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, base)
	clean = strings.TrimLeft(clean, "._")
	if clean == "" { // go ignores such files
		clean = "job"
	}
	return clean + generatedSuffix
}

// readOthers reads the package's other files.
func (t *target) readOthers(name string) error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil // it is made later
	}
	for _, e := range entries {
		n := e.Name()
		if e.IsDir() || n == name || !strings.HasSuffix(n, ".go") || strings.HasSuffix(n, "_test.go") ||
			strings.HasPrefix(n, ".") || strings.HasPrefix(n, "_") {
			continue
		}
		path := filepath.Join(t.dir, n)
		if strings.HasSuffix(n, generatedSuffix) && isGenerated(path) {
			return ir.Diags{{Pos: ir.Pos{File: slashed(path)}, Code: codeNameTaken,
				Msg: fmt.Sprintf("the training code of another job is here, and a package holds one; generate %s "+
					"into a folder of its own with -o DIR, or remove this file", name)}}
		}
		if f, err := parser.ParseFile(t.set, slashed(path), nil, parser.SkipObjectResolution); f != nil &&
			(err == nil || f.Name != nil) {
			t.others = append(t.others, f)
		}
	}
	return nil
}

// packageName is the package that is there; else $GOPACKAGE, where go generate runs in the target's folder; else the
// one of the lock; else the folder's name.
func (t *target) packageName(l *jobLock) string {
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
	case l.file != nil && l.file.Files[t.key] != "" && l.file.Gen.Package != "" && !l.file.Gen.Main:
		return l.file.Gen.Package
	}
	dir, err := filepath.Abs(t.dir)
	if err != nil {
		dir = t.dir
	}
	return packageOf(filepath.Base(dir))
}

// packageOf is a folder's name as a package can be called.
func packageOf(folder string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return unicode.ToLower(r)
		}
		return -1
	}, folder)
	name = strings.TrimSuffix(strings.TrimLeftFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }), "_test")
	if name == "" || token.IsKeyword(name) || name == "main" || name == "documentation" { // go gives these a meaning
		return "train"
	}
	return name
}

// check refuses to overwrite what planc did not generate, and code whose names the package already has.
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
				Msg: fmt.Sprintf("%s is a name of this package and of the generated code; generate into a folder of "+
					"its own with -o DIR", name)})
		}
	}
	slices.SortFunc(diags, func(a, b ir.Diag) int { return strings.Compare(a.Msg, b.Msg) })
	return diags.Err()
}

// jobOfCode finds the job's file in the header of generated code.
var jobOfCode = regexp.MustCompile(`(?m)^// Job .*\((.*)\): model `)

// checkOwner refuses to overwrite the code of another job whose file is still there: names of jobs are not always names
// that files of Go can have, and jobs of several folders can share one.
func (t *target) checkOwner(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // it is not there
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
	return ir.Diags{{Pos: ir.Pos{File: slashed(path), Line: 1 + strings.Count(string(text[:at[0]]), "\n"), Column: 1},
		Code: codeNameTaken,
		Msg: fmt.Sprintf("this is the training code of %s; generate that of this job into a folder of its own with "+
			"-o DIR, or rename the job", slashed(theirs))}}
}

// sharedLock refuses a job whose lock is another job's: those of X.yaml and X.yml would be X.lock.
func sharedLock(path string) error {
	if lockPath(path) == "" {
		return nil
	}
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(path, ext)
	for _, e := range lockedExtensions {
		if e == ext {
			break
		}
		if first := stem + e; !missing(first) && looksLikeJob(first) && !sameFile(first, path) {
			return ir.Diags{{Pos: ir.Pos{File: slashed(path)}, Code: codeNameTaken,
				Msg: fmt.Sprintf("%s is the lock of %s, and would be this job's too; rename one of them",
					slashed(lockPath(path)), slashed(first))}}
		}
	}
	return nil
}

// sameFile says whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// declaredNames are those that a file declares in its package, and those by which it calls its imports.
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
