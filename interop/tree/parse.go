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

// Limits of a file. Configurations of trainers are far below them.
const (
	maxBytes = 1 << 20
	maxDepth = 60
	maxNodes = 50_000 // values, after YAML's aliases are expanded
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
	lines    []int // the offset of each line
	anchored bool  // has aliases or merged keys, so that an edit may change several keys
	locked   string
}

const bom = "\xef\xbb\xbf"

// Parse reads a file whose top level is a map. It never returns a nil Doc or a nil Root: after errors the Doc holds
// what could be read.
func Parse(s Syntax, file string, data []byte) (*Doc, ir.Diags) {
	d := &Doc{File: file, Syntax: s}
	d.text, d.hasBOM = strings.CutPrefix(string(data), bom)
	d.Root = &Node{Kind: strict.Map, Pos: ir.Pos{File: file, Line: 1, Column: 1}, layout: d.topLayout()}
	var diags ir.Diags
	switch bad := firstBadByte(d.text); {
	case len(data) > maxBytes:
		diags.Addf(d.Root.Pos, strict.TooLarge, "the file has %d bytes; it must have at most %d", len(data), maxBytes)
		return d, diags
	case bad >= 0:
		d.lines = lineStarts(d.text)
		diags.Addf(d.pos(bad), strict.Syntax, "byte 0x%02x is not UTF-8 text; save the file as UTF-8", d.text[bad])
		return d, diags
	}
	d.lines = lineStarts(d.text)
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

// lineStarts returns the offset of each line.
func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// pos returns the position of an offset.
func (d *Doc) pos(offset int) ir.Pos {
	low, high := 0, len(d.lines)
	for high-low > 1 {
		middle := (low + high) / 2
		if d.lines[middle] <= offset {
			low = middle
		} else {
			high = middle
		}
	}
	column := utf8.RuneCountInString(d.text[d.lines[low]:min(offset, len(d.text))]) + 1
	return ir.Pos{File: d.File, Line: low + 1, Column: column}
}

// limits counts the values of a file while its tree is built.
type limits struct {
	count int
	full  bool
}

// exceeded reports whether one more value at a depth is too much, and reports this once.
func (l *limits) exceeded(at ir.Pos, depth int, diags *ir.Diags) bool {
	l.count++
	if l.count <= maxNodes && depth <= maxDepth {
		return false
	}
	if !l.full {
		diags.Addf(at, strict.TooLarge, "the file contains more than %d values or %d levels, with aliases expanded",
			maxNodes, maxDepth)
	}
	l.full = true
	return true
}

// addField adds a field to a map, unless the map has the key.
func (n *Node) addField(f *Field, seen map[string]ir.Pos, diags *ir.Diags) {
	first, ok := seen[f.Key]
	if ok {
		diags.Addf(f.Pos, strict.DuplicateKey, "key %s is given twice, first on line %d", f.Key, first.Line)
		return
	}
	seen[f.Key] = f.Pos
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
