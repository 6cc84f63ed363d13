package tree

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Syntax is how a file is written.
type Syntax uint8

// The syntaxes that this package reads.
const (
	JSON Syntax = iota
	YAML
	TOML
	// Hjson is JSON in which quotes, commas and the outer braces may be left out.
	Hjson
)

func (s Syntax) String() string { return [...]string{"JSON", "YAML", "TOML", "Hjson"}[s] }

// isJSON reports whether a syntax is JSON or one that extends it.
func (s Syntax) isJSON() bool { return s == JSON || s == Hjson }

// Limits of a file. Configurations of trainers are far below them, and larger files would take seconds.
const (
	maxBytes = 2 << 20
	maxDepth = 60
	maxNodes = 50_000 // values, after YAML's aliases are expanded

	// maxTOML is the number of values of a TOML file. It is lower, because the library's time grows with the square of
	// the number of keys in a table.
	maxTOML = 10_000
)

// SyntaxOf returns the syntax of a file by its extension, and for other extensions by its first character.
func SyntaxOf(f interop.File) Syntax {
	switch strings.ToLower(filepath.Ext(f.Name)) {
	case ".json", ".jsonc", ".hjson":
		return JSON
	case ".toml":
		return TOML
	case ".yaml", ".yml":
		return YAML
	}
	for line := range bytes.Lines(bytes.TrimPrefix(f.Data, []byte(bom))) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("//")):
			continue
		case line[0] == '{':
			return JSON
		case line[0] == '[':
			return TOML
		}
		return YAML
	}
	return YAML
}

// Doc is a file as a tree. It is an interop.Document.
type Doc struct {
	File   string
	Syntax Syntax
	Root   *Node // a map, unless Parse reported an error

	text     string // without the byte-order mark
	hasBOM   bool
	index    index
	anchored bool // has aliases or merged keys, so that an edit may change several keys
	locked   string
}

const bom = "\xef\xbb\xbf"

// Parse reads a file whose top level is a map. It never returns a nil Doc or a nil Root: after errors the Doc holds
// what could be read.
func Parse(s Syntax, file string, data []byte) (*Doc, ir.Diags) {
	d := &Doc{File: file, Syntax: s}
	if len(data) > maxBytes {
		d.Root = &Node{Kind: strict.Map, Pos: ir.Pos{File: file, Line: 1, Column: 1}, layout: d.topLayout()}
		return d, ir.Diags{{Pos: d.Root.Pos, Code: strict.TooLarge,
			Msg: fmt.Sprintf("the file has %d bytes; it must have at most %d", len(data), maxBytes)}}
	}
	d.text, d.hasBOM = strings.CutPrefix(string(data), bom)
	d.Root = &Node{Kind: strict.Map, Pos: ir.Pos{File: file, Line: 1, Column: 1}, layout: d.topLayout()}
	var diags ir.Diags
	if bad := firstBadByte(d.text); bad >= 0 {
		d.index = newIndex(d.text)
		diags.Addf(d.pos(bad), strict.Syntax, "byte 0x%02x is not UTF-8 text; save the file as UTF-8", d.text[bad])
		return d, diags
	}
	d.index = newIndex(d.text)
	switch s {
	case JSON, Hjson:
		diags = d.parseJSON()
	case YAML:
		diags = d.parseYAML()
	case TOML:
		diags = d.parseTOML()
	}
	if len(diags) == 0 && d.Root.Kind != strict.Map {
		diags.Addf(d.Root.Pos, strict.WrongType, "the file is %s; its top level must be a mapping of keys to values",
			d.Root.Kind)
		d.Root = &Node{Kind: strict.Map, Pos: d.Root.Pos, layout: d.topLayout()}
	}
	return d, diags
}

func (d *Doc) topLayout() layout { return [...]layout{flow, block, table, flow}[d.Syntax] }

// firstBadByte returns the offset of the first byte that is no text, -1 if there is none.
func firstBadByte(text string) int {
	for i, r := range text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' {
			return i
		}
		if r == utf8.RuneError {
			_, n := utf8.DecodeRuneInString(text[i:])
			if n == 1 {
				return i
			}
		}
	}
	return -1
}

// pos returns the position of an offset.
func (d *Doc) pos(offset int) ir.Pos {
	line, column := d.index.position(offset)
	return ir.Pos{File: d.File, Line: line, Column: column}
}

// limits counts the values of a file while its tree is built.
type limits struct {
	limit int
	count int
	full  bool
}

// exceeded reports whether one more value at a depth is too much, and reports this once.
func (l *limits) exceeded(at ir.Pos, depth int, diags *ir.Diags) bool {
	l.count++
	if l.count <= l.limit && depth <= maxDepth {
		return false
	}
	if !l.full {
		addTooLarge(at, l.limit, diags)
	}
	l.full = true
	return true
}

func addTooLarge(at ir.Pos, limit int, diags *ir.Diags) {
	diags.Addf(at, strict.TooLarge, "the file contains more than %d values or %d levels, with aliases expanded",
		limit, maxDepth)
}

// addField adds a field to a map, unless the map has the key.
func (n *Node) addField(f *Field, seen map[string]*Field, diags *ir.Diags) {
	first, ok := seen[f.Key]
	if ok {
		diags.Addf(f.Pos, strict.DuplicateKey, "key %s is given twice, first on line %d", f.Key, first.Pos.Line)
		return
	}
	seen[f.Key] = f
	n.Fields = append(n.Fields, f)
}

// Get returns the text of a key's value and whether the file has the key. Lists and maps are returned as JSON.
func (d *Doc) Get(key string) (text string, ok bool) {
	n := d.Root.Find(key)
	if n == nil || key == "" {
		return "", false
	}
	return n.Flow(), true
}

// Bytes returns the file with all edits.
func (d *Doc) Bytes() []byte {
	if d.hasBOM {
		return []byte(bom + d.text)
	}
	return []byte(d.text)
}

var _ interop.Document = (*Doc)(nil)

// errorf returns an error of an edit as ir.Diags.
func (d *Doc) errorf(at ir.Pos, format string, args ...any) error {
	return ir.Diags{{Pos: at, Code: CannotEdit, Msg: fmt.Sprintf(format, args...)}}
}

// CannotEdit is reported if a key cannot be changed in place.
const CannotEdit ir.Code = "CannotEdit"
