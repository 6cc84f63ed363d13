package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// codeFolders are those whose codes reach users through this command; ir/spec tests its own.
var codeFolders = []string{".", "../../passes/search", "../../costmodel"}

// TestCodesHaveExamples runs the example of each exported code's comment and wants that code.
func TestCodesHaveExamples(t *testing.T) {
	n := 0
	for _, folder := range codeFolders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				n += codesIn(t, file, d)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d codes found", n)
	}
}

// codesIn tests the exported codes of a declaration and counts them.
func codesIn(t *testing.T, file string, d ast.Decl) (n int) {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.CONST {
		return 0
	}
	for _, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		typ, ok := spec.Type.(*ast.SelectorExpr)
		if !ok || typ.Sel.Name != "Code" || !spec.Names[0].IsExported() {
			continue
		}
		n++
		doc := spec.Doc
		if doc == nil {
			doc = g.Doc
		}
		code := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
		_, example, ok := strings.Cut(doc.Text(), "Example:\n")
		if !ok {
			t.Errorf("%s: %s has no example", file, code)
			continue
		}
		if output := tryExample(t, strings.TrimSpace(example)); !strings.Contains(output, "["+code+"]") {
			t.Errorf("%s: the example of %s gives %q", file, code, output)
		}
	}
	return n
}

// tryExample runs a command, or plans a job or a cluster of which the example is a line, and returns what was said.
func tryExample(t *testing.T, example string) string {
	t.Helper()
	dir := t.TempDir()
	args, isCommand := strings.CutPrefix(example, "planc ")
	if !isCommand {
		job := map[string]string{"model": "model: llama3-8b", "train": "train: {seq_len: 2048, global_batch: 8}",
			"cluster": "cluster: 4xdgx-h100"}
		key, _, _ := strings.Cut(example, ":")
		if key == "node" || key == "measured" { // a line of a cluster file
			if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(example+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			key, example = "cluster", "cluster: {node: ./cluster.yaml}"
		}
		job[key] = example
		text := ""
		for _, line := range job {
			text += line + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "planc.yaml"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		args = "plan " + dir
	}
	var stdout, stderr bytes.Buffer
	if code := run(strings.Fields(args), strings.NewReader(""), &stdout, &stderr); code == 0 {
		t.Errorf("%q succeeds", example)
	}
	return stderr.String()
}
