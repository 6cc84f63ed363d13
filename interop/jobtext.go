package interop

import (
	"fmt"
	"slices"
	"strings"
)

// sections is the order of the job's mappings in a job's text. Keys that are not listed follow in the order in which
// import found them.
var sections = []string{"name", "model", "data", "train", "cluster", "objective", "plan"}

// JobText returns the job as YAML, one field a line, each with the key of the user's file that it comes from as a
// comment.
func (im *Import) JobText() []byte {
	text, _ := im.text()
	return text
}

// text returns the job's text, and for each of its lines the path of the field that it sets; "" if it sets none.
func (im *Import) text() (text []byte, paths []string) {
	w := &jobWriter{}
	fields := slices.Clone(im.Fields)
	slices.SortStableFunc(fields, func(a, b Field) int { return sectionOf(a.Path) - sectionOf(b.Path) })
	w.line("", fmt.Sprintf("# Imported from %s (%s).", strings.Join(im.Files, ", "), im.Format))
	w.write(newTree(fields).children, 0)
	return []byte(w.out.String()), w.paths
}

// sectionOf returns where a field's section stands in a job.
func sectionOf(path string) int {
	top, _, _ := strings.Cut(path, ".")
	if i := slices.Index(sections, top); i >= 0 {
		return i
	}
	return len(sections)
}

// fieldTree is a mapping of the job.
type fieldTree struct {
	key      string
	field    *Field // nil for an inner mapping
	children []*fieldTree
}

// newTree nests fields by the parts of their paths. Fields of one mapping come together, at the place of the first.
func newTree(fields []Field) *fieldTree {
	root := &fieldTree{}
	for i := range fields {
		at := root
		parts := strings.Split(fields[i].Path, ".")
		for depth, part := range parts {
			at = at.child(part)
			if depth == len(parts)-1 {
				at.field = &fields[i]
			}
		}
	}
	return root
}

// child returns the child with a key, which it adds if it is absent.
func (t *fieldTree) child(key string) *fieldTree {
	i := slices.IndexFunc(t.children, func(c *fieldTree) bool { return c.key == key })
	if i >= 0 {
		return t.children[i]
	}
	c := &fieldTree{key: key}
	t.children = append(t.children, c)
	return c
}

// jobWriter writes a job and counts its lines.
type jobWriter struct {
	out   strings.Builder
	paths []string
}

// line writes a line that sets a field.
func (w *jobWriter) line(path, text string) {
	w.out.WriteString(text + "\n")
	w.paths = append(w.paths, path)
}

// commentColumn is where comments stand, unless the line is longer.
const commentColumn = 40

func (w *jobWriter) write(nodes []*fieldTree, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, n := range nodes {
		if n.field == nil {
			w.line("", indent+n.key+":")
			w.write(n.children, depth+1)
			continue
		}
		if len(n.children) > 0 {
			panic("interop: " + n.field.Path + " is a value and a mapping")
		}
		line := fmt.Sprintf("%s%s: %s", indent, n.key, n.field.Value)
		if n.field.From != "" {
			line = fmt.Sprintf("%-*s # %s", commentColumn, line, oneLine(n.field.source()))
		}
		w.line(n.field.Path, line)
	}
}

// source returns where a field comes from: its key, with its line if that is known.
func (f *Field) source() string {
	if f.Pos.Line == 0 {
		return f.From
	}
	return fmt.Sprintf("%s, line %d", f.From, f.Pos.Line)
}

// oneLine escapes line breaks, so that a comment cannot end early.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}
