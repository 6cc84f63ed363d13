package tree

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// writer writes values in a syntax.
type writer struct{ source }

// Write returns a new file with values in their order. Absent values and environment variables are left out. Keys
// are dotted paths, and the texts of values are read as [Doc.Set] reads them.
func Write(s Syntax, values []interop.Value) ([]byte, error) {
	w := writer{source{syntax: s}}
	root := &Node{Kind: strict.Map}
	for _, v := range values {
		if !v.IsAbsent && !v.Env {
			root.put(strings.Split(v.Key, "."), literal(v.Text))
		}
	}
	var text string
	var err error
	switch s {
	case JSON:
		text = w.longJSON(root, "")
	case YAML:
		text, err = w.yamlLines(root, "")
	case TOML:
		text, err = w.tableLines("", root)
	}
	return []byte(strings.TrimSuffix(text, "\n") + "\n"), err
}

// put sets the value at a path of a new tree.
func (n *Node) put(path []string, value *Node) {
	f := n.Field(path[0])
	if f == nil {
		f = &Field{Key: path[0], Value: &Node{Kind: strict.Map}}
		n.Fields = append(n.Fields, f)
	}
	if len(path) == 1 {
		f.Value = value
		return
	}
	f.Value.put(path[1:], value)
}

func isJSON(text string) bool { return json.Valid([]byte(text)) && strings.TrimSpace(text) == text }

// isScalar reports whether a value is neither null nor a map or list.
func isScalar(n *Node) bool {
	return n.Kind != strict.Map && n.Kind != strict.List && n.Kind != strict.Null
}

// needsEscape reports whether a character cannot stand in single quotes.
func needsEscape(r rune) bool { return r < ' ' || strings.ContainsRune("\x7f\u0085\u2028\u2029", r) }

func isMap(n *Node) bool { return n.Kind == strict.Map && len(n.Fields) > 0 }

func joinPath(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// flowText returns a value in one line. old is the value that it replaces; its quotes are kept if they fit.
func (w writer) flowText(n, old *Node) (string, error) {
	keepsQuotes := old != nil && old.quote != 0 && isScalar(n)
	if keepsQuotes && n.Kind != strict.String {
		_, keepsQuotes = literalKind(old.Text)
	}
	if keepsQuotes && old.quote == '\'' {
		if text, ok := w.singleQuoted(n.Text); ok {
			return text, nil
		}
	}
	if keepsQuotes {
		return quoteJSON(n.Text), nil
	}
	switch n.Kind {
	case strict.Map:
		return w.flowMap(n)
	case strict.List:
		return w.flowList(n)
	}
	return w.scalarText(n)
}

// singleQuoted returns a text in single quotes. ok is false if the syntax cannot write it so.
func (w writer) singleQuoted(text string) (quoted string, ok bool) {
	if strings.ContainsFunc(text, needsEscape) {
		return "", false
	}
	if w.syntax == TOML {
		return "'" + text + "'", !strings.Contains(text, "'")
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'", w.syntax == YAML
}

func (w writer) flowList(n *Node) (string, error) {
	var parts []string
	for _, item := range n.Items {
		text, err := w.flowText(item, nil)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

func (w writer) flowMap(n *Node) (string, error) {
	var parts []string
	for _, f := range n.Fields {
		text, err := w.entry(f, "", false)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

// scalarText returns a scalar as the syntax writes it.
func (w writer) scalarText(n *Node) (string, error) {
	switch {
	case n.Kind == strict.String:
		return w.stringText(n.Text), nil
	case n.Kind == strict.Null && w.syntax == TOML:
		return "", ir.Diags{{Pos: n.Pos, Code: CannotEdit, Msg: "TOML has no null: remove the key instead"}}
	case n.Kind == strict.Null:
		return "null", nil
	case n.Kind == strict.Float && !w.syntax.isJSON():
		return plainFloat(n.Text), nil
	}
	return n.Text, nil
}

// plainFloat adds the fraction without which PyYAML reads 1e-5 as text.
func plainFloat(text string) string {
	mantissa, exponent, ok := strings.Cut(strings.ToLower(text), "e")
	if !ok {
		return text
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent[0] != '-' && exponent[0] != '+' {
		exponent = "+" + exponent
	}
	return mantissa + "e" + exponent
}

var (
	plainYAML = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*$`)
	bareTOML  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	words12   = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null|\.inf|\.nan)$`)
)

// stringText returns a text with the quotes that it needs.
func (w writer) stringText(text string) string {
	if w.syntax != YAML {
		return quoteJSON(text)
	}
	_, err := strconv.ParseFloat(text, 64)
	if plainYAML.MatchString(text) && !words12.MatchString(text) && err != nil {
		return text
	}
	if quoted, ok := w.singleQuoted(text); ok {
		return quoted
	}
	return quoteJSON(text)
}

// keyText returns a key with the quotes that it needs.
func (w writer) keyText(key string) string {
	switch {
	case w.syntax == YAML:
		return w.stringText(key)
	case w.syntax == TOML && bareTOML.MatchString(key):
		return key
	}
	return quoteJSON(key)
}

// tableKey returns the dotted key of a table of TOML.
func (w writer) tableKey(path string) string {
	words := strings.Split(path, ".")
	for i, word := range words {
		words[i] = w.keyText(word)
	}
	return strings.Join(words, ".")
}

// entry returns a field as the syntax writes it between brackets. In a long entry, maps take several lines.
func (w writer) entry(f *Field, indent string, isLong bool) (string, error) {
	separator := ": "
	if w.syntax == TOML {
		separator = " = "
	}
	if isLong && isMap(f.Value) {
		return w.keyText(f.Key) + separator + w.longJSON(f.Value, indent), nil
	}
	text, err := w.flowText(f.Value, nil)
	return w.keyText(f.Key) + separator + text, err
}

// longJSON returns a map of JSON with one field a line.
func (w writer) longJSON(n *Node, indent string) string {
	if len(n.Fields) == 0 {
		return "{}"
	}
	inner := indent + w.unit()
	var lines []string
	for _, f := range n.Fields {
		var b strings.Builder
		if isMap(f.Value) {
			b.WriteString(w.longJSON(f.Value, inner))
		} else {
			f.Value.WriteJSON(&b)
		}
		lines = append(lines, inner+quoteJSON(f.Key)+": "+b.String())
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
}

// yamlLines returns the fields of a map as block lines, each with its line break.
func (w writer) yamlLines(n *Node, indent string) (string, error) {
	var b strings.Builder
	for _, f := range n.Fields {
		lines, err := w.blockLines(f, indent)
		if err != nil {
			return "", err
		}
		b.WriteString(lines + "\n")
	}
	return b.String(), nil
}

// blockLines returns a field as lines of YAML, without the last line break.
func (w writer) blockLines(f *Field, indent string) (string, error) {
	key := indent + w.keyText(f.Key) + ":"
	if isMap(f.Value) {
		lines, err := w.yamlLines(f.Value, indent+w.unit())
		return key + "\n" + strings.TrimSuffix(lines, "\n"), err
	}
	text, err := w.flowText(f.Value, nil)
	return key + " " + text, err
}

// tableLines returns a table of TOML with its header: first its values, then the tables in it.
func (w writer) tableLines(path string, n *Node) (string, error) {
	var values, tables strings.Builder
	for _, f := range n.Fields {
		if isMap(f.Value) {
			lines, err := w.tableLines(joinPath(path, f.Key), f.Value)
			if err != nil {
				return "", err
			}
			tables.WriteString("\n" + lines)
			continue
		}
		text, err := w.entry(f, "", false)
		if err != nil {
			return "", err
		}
		values.WriteString(text + "\n")
	}
	if path == "" || values.Len() == 0 && tables.Len() > 0 {
		return strings.TrimPrefix(values.String()+tables.String(), "\n"), nil
	}
	return "[" + w.tableKey(path) + "]\n" + values.String() + tables.String(), nil
}
