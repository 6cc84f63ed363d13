package tree

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// editor finds the bytes that an edit changes.
type editor struct {
	writer
	doc *Doc
}

func (d *Doc) editor() editor { return editor{writer{d.source()}, d} }

func (d *Doc) source() source { return source{d.text, d.Syntax} }

// change replaces bytes of the text.
type change struct {
	start, end int
	text       string
}

// Set changes the value of a key, or inserts the key next to the key whose name starts with the most equal words.
//
// The value's text is JSON: 16, true, null, [0.9, 0.95]. Other text is a string, which is written with the quotes that
// the syntax needs. A string that looks like a number is given in double quotes. A value in quotes stays in quotes if
// the old text and the new one have the same type.
func (d *Doc) Set(v interop.Value) error {
	if v.IsAbsent {
		return d.Remove(v.Key)
	}
	p := place{at: d.Root, rest: v.Key}.walk()
	want := literal(v.Text)
	var changes []change
	var err error
	switch {
	case d.locked != "":
		err = d.errorf(p.at.Pos, "%s cannot be changed: %s", v.Key, d.locked)
	case v.Key == "" || slices.Contains(strings.Split(p.rest, "."), "") && p.rest != "":
		err = d.errorf(p.at.Pos, "%q is not a dotted name of a key", v.Key)
	case p.at.alias:
		err = d.errorf(p.at.Pos, "%s cannot be changed: its value comes from a YAML anchor; write the value out here",
			v.Key)
	case p.rest == "":
		if p.at.Kind == want.Kind && p.at.Flow() == want.Flow() {
			return nil
		}
		changes, err = d.editor().replace(p, want)
	default:
		changes, err = d.editor().insert(p, v.Key, want)
	}
	if err != nil {
		return err
	}
	return d.apply(v.Key, want, changes)
}

// Remove deletes a key, with its line if nothing else is on it. It does nothing if the file does not have the key.
func (d *Doc) Remove(key string) error {
	p := place{at: d.Root, rest: key}.walk()
	switch {
	case p.rest != "":
		return nil
	case d.locked != "":
		return d.errorf(p.at.Pos, "%s cannot be removed: %s", key, d.locked)
	case p.field == nil:
		return d.errorf(p.at.Pos, "%s cannot be removed: it is an item of a list", key)
	case p.parent.alias || isMerged(p.field):
		return d.errorf(p.at.Pos, "%s cannot be removed: its value comes from a YAML anchor", key)
	}
	var changes []change
	switch p.parent.layout {
	case flow:
		changes = d.editor().removeFlow(p.parent, p.field)
	case block:
		changes = d.editor().removeBlock(p.parent, p.field)
	case table:
		changes = d.editor().removeTable(p.field)
	}
	return d.apply(key, nil, changes)
}

// isMerged reports whether a field comes from a merge key (<<).
func isMerged(f *Field) bool { return f.Value.alias }

// literal reads the text of a value.
func literal(text string) *Node {
	if isJSON(text) {
		d, diags := Parse(JSON, "", []byte(`{"value": `+text+`}`))
		if len(diags) == 0 {
			return d.Root.Get("value")
		}
	}
	return &Node{Kind: strict.String, Text: text}
}

// replace changes the value of a key.
func (e editor) replace(p place, want *Node) ([]change, error) {
	n := p.at
	if p.field == nil && n == e.doc.Root {
		return nil, e.doc.errorf(n.Pos, "the top level cannot be replaced")
	}
	if n.layout == table && p.field == nil {
		return nil, e.doc.errorf(n.Pos, "an item of a list of tables cannot be set to one value")
	}
	if n.layout == table {
		return nil, e.doc.errorf(n.Pos, "%s cannot be set to one value: it is a table with a header", p.field.Key)
	}
	text, err := e.flowText(want, n)
	if err != nil {
		return nil, err
	}
	start := n.Start
	switch {
	case e.syntax != YAML:
	case n.Start == n.End:
		text = " " + text
	case n.layout == block && n.Kind != strict.String:
		start, text = e.afterColon(n, text)
	}
	return []change{{start, n.End, text}}, nil
}

// afterColon returns where the value that replaces a block of YAML starts: after the colon of its key, unless a comment
// is there.
func (e editor) afterColon(n *Node, text string) (start int, indented string) {
	head := strings.TrimRight(e.text[:n.Start], " \t\r\n")
	if strings.HasSuffix(head, ":") {
		return len(head), " " + text
	}
	return n.Start, text
}

// insert adds the rest of a path to the deepest map that exists.
func (e editor) insert(p place, path string, want *Node) ([]change, error) {
	words := strings.Split(p.rest, ".")
	for _, word := range slices.Backward(words[1:]) {
		want = &Node{Kind: strict.Map, Fields: []*Field{{Key: word, Value: want}}}
	}
	f := &Field{Key: words[0], Value: want}
	n := p.at
	if n.Kind == strict.Null && p.field != nil {
		return e.replace(p, &Node{Kind: strict.Map, Fields: []*Field{f}})
	}
	if n.Kind != strict.Map {
		above := strings.TrimSuffix(path, "."+p.rest)
		return nil, e.doc.errorf(n.Pos, "%s cannot be set: %s is %s", path, above, n.Kind)
	}
	switch n.layout {
	case block:
		return e.insertBlock(n, f)
	case table:
		return e.insertTable(n, strings.TrimSuffix(strings.TrimSuffix(path, p.rest), "."), f)
	}
	return e.insertFlow(n, f)
}

// related returns the field after which a key is inserted: of the fields that the map itself has, the last one whose
// name starts with the most equal words, and the last of all if no name starts with an equal word.
func related(fields []*Field, key string) *Field {
	var best *Field
	limit := 0
	for _, f := range fields {
		if n := equalWords(f.Key, key); n >= limit {
			best, limit = f, n
		}
	}
	return best
}

// equalWords returns the number of words with which two names start.
func equalWords(a, b string) int {
	split := func(r rune) bool { return r == '_' || r == '-' }
	left, right := strings.FieldsFunc(a, split), strings.FieldsFunc(b, split)
	n := 0
	for n < min(len(left), len(right)) && left[n] == right[n] {
		n++
	}
	return n
}

// ownFields returns the fields that the map itself has in the file.
func (n *Node) ownFields() []*Field {
	return slices.DeleteFunc(slices.Clone(n.Fields), isMerged)
}

// apply changes the text, and takes the change back unless the key has the wanted value (none, if want is nil) and
// every other key has the value that it had.
func (d *Doc) apply(key string, want *Node, changes []change) error {
	slices.SortFunc(changes, func(a, b change) int { return a.start - b.start })
	var b strings.Builder
	last := 0
	for _, c := range changes {
		if c.start < last || c.end < c.start || c.end > len(d.text) {
			return d.errorf(d.Root.Pos, "%s cannot be changed in place", key)
		}
		b.WriteString(d.text[last:c.start])
		b.WriteString(strings.ReplaceAll(c.text, "\n", d.source().newline()))
		last = c.end
	}
	b.WriteString(d.text[last:])
	text := b.String()
	after, diags := Parse(d.Syntax, d.File, []byte(text))
	diags = slices.DeleteFunc(diags, func(g ir.Diag) bool { return g.Code == strict.Empty })
	got := after.Root.Find(key)
	switch {
	case len(diags) > 0:
		return d.errorf(d.Root.Pos, "%s cannot be changed in place: %s", key, diags[0].Msg)
	case want == nil && got != nil, want != nil && !sameValue(want, got):
		return d.errorf(d.Root.Pos, "%s cannot be changed in place", key)
	}
	if other := d.otherChange(after, key); other != "" {
		return d.errorf(d.Root.Pos, "%s cannot be changed in place, because %s would change too", key, other)
	}
	after.hasBOM = d.hasBOM
	*d = *after
	return nil
}

// otherChange returns a path other than key, or than one below or above it, whose value differs in a document; "" if
// there is none.
func (d *Doc) otherChange(after *Doc, key string) string {
	before := map[string]string{}
	d.Root.Walk(func(path string, f *Field) { before[path] = f.Value.Flow() })
	changed := func(path string) bool {
		return path != key && !strings.HasPrefix(path, key+".") && !strings.HasPrefix(key, path+".")
	}
	found := ""
	after.Root.Walk(func(path string, f *Field) {
		value, ok := before[path]
		if (!ok || value != f.Value.Flow()) && changed(path) {
			found = path
		}
		delete(before, path)
	})
	for path := range before {
		if changed(path) {
			found = path
		}
	}
	return found
}

// sameValue reports whether a value is the wanted one. Numbers may be written differently.
func sameValue(want, got *Node) bool {
	if got == nil {
		return false
	}
	if want.Kind == got.Kind && (want.Kind == strict.Map || want.Kind == strict.List) {
		return sameParts(want, got)
	}
	if want.Text == got.Text {
		return (want.Kind == strict.Null) == (got.Kind == strict.Null)
	}
	a, errA := strconv.ParseFloat(want.Text, 64)
	b, errB := strconv.ParseFloat(got.Text, 64)
	return errA == nil && errB == nil && a == b && want.Kind != strict.String
}

func sameParts(want, got *Node) bool {
	same := func(a, b *Node) bool { return sameValue(a, b) }
	return slices.EqualFunc(want.Items, got.Items, same) &&
		slices.EqualFunc(want.Fields, got.Fields, func(a, b *Field) bool {
			return a.Key == b.Key && sameValue(a.Value, b.Value)
		})
}
