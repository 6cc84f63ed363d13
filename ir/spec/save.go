package spec

import (
	"path/filepath"
	"reflect"
	"strings"

	"github.com/planc-dev/planc/ir/spec/strict"
)

// Save returns the job as the text of a file, including overrides, with a comment for each field. Relative paths are
// rewritten to start at the file's folder.
func (j *Job) Save(file string) []byte {
	doc := &strict.Doc{Root: j.doc.Root.Clone()}
	dir := filepath.Dir(file)
	j.rebase(doc.Root, dir)
	plain := doc.YAML()
	text := addComments(plain)
	if second, diags := strict.Parse(file, text); len(diags) > 0 || !reflect.DeepEqual(positionless(second.Root),
		positionless(parsed(file, plain))) {
		return plain // a text that adding comments would change
	}
	return text
}

func parsed(file string, text []byte) *strict.Node {
	d, _ := strict.Parse(file, text)
	return d.Root
}

// positionless returns a tree without positions.
func positionless(n *strict.Node) any {
	switch n.Kind {
	case strict.Map:
		out := map[string]any{}
		for _, f := range n.Fields {
			out[f.Key] = positionless(f.Value)
		}
		return out
	case strict.List:
		var out []any
		for _, i := range n.Items {
			out = append(out, positionless(i))
		}
		return out
	}
	return [2]any{n.Kind, n.Text}
}

// rebase rewrites the paths of a job to start at another folder.
func (j *Job) rebase(root *strict.Node, dir string) {
	for _, n := range []*strict.Node{root.Get("model"), root.Get("model").Get("base")} {
		if n != nil && n.Kind == strict.String && isModelPath(n.Text) {
			n.Text = fromDir(dir, n.Dir, n.Text)
		}
	}
	for _, n := range []*strict.Node{root.Get("cluster"), root.Get("cluster").Get("node")} {
		if n != nil && n.Kind == strict.String && isClusterPath(n.Text) {
			n.Text = fromDir(dir, n.Dir, n.Text)
		}
	}
	if n := root.Get("train").Get("init"); n != nil && n.Text != "random" {
		n.Text = fromDir(dir, j.Dir, n.Text)
	}
	data := root.Get("data")
	if data == nil || filepath.Clean(j.Dir) == filepath.Clean(dir) || strings.HasPrefix(j.Data.Root, "$") {
		return
	}
	data.Put(strict.Field{Key: "root", Value: &strict.Node{Kind: strict.String,
		Text: fromDir(dir, j.Dir, j.Data.Root+"/")}})
}

// fromDir rewrites a path that starts at folder from to start at dir. The result keeps a slash or a dot, so that it is
// not mistaken for a name.
func fromDir(dir, from, path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "$") {
		return path
	}
	whole := filepath.Join(from, path)
	rel, err := filepath.Rel(dir, whole)
	if err != nil { // only one of the folders is absolute
		rel, err = filepath.Abs(whole)
		if err != nil {
			return whole
		}
	}
	rel = filepath.ToSlash(rel)
	if !strings.Contains(rel, "/") && !strings.HasPrefix(rel, ".") {
		rel = "./" + rel
	}
	return rel
}

// commentColumn is the column in which comments of a saved job start.
const commentColumn = 34

// addComments returns a job's text with a comment on each line that has a field.
func addComments(text []byte) []byte {
	meaning := map[string]string{}
	for _, f := range Fields() {
		meaning[f.Path] = f.Doc
	}
	var out strings.Builder
	var path []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		key, _, ok := strings.Cut(strings.TrimLeft(line, " "), ":")
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if ok && depth <= len(path) {
			path = append(path[:depth], key)
			if doc := meaning[strings.Join(path, ".")]; doc != "" {
				line += strings.Repeat(" ", max(2, commentColumn-len([]rune(line)))) + "# " + doc
			}
		}
		out.WriteString(line + "\n")
	}
	return []byte(out.String())
}
