package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/planc-dev/planc/ir"
	yaml "go.yaml.in/yaml/v4"
)

// clearer translates messages of the YAML library. In words, %d is the line on which the incomplete part starts.
var clearer = []struct{ found, words string }{
	{"a tab character", "there is a tab here: indent YAML with spaces"},
	{"mixed spaces and tabs", "there is a tab here: indent YAML with spaces"},
	{"mapping values are not allowed", "unexpected ':': align the keys of a mapping in one column, and quote a " +
		"text that contains ': '"},
	{"expected ',' or '}'", "the { of line %d is not closed: add ',' or '}'"},
	{"expected ',' or ']'", "the [ of line %d is not closed: add ',' or ']'"},
	{"unexpected end of stream", "the file ends inside the quotes that open on line %d"},
	{"did not find expected key", "a key is missing here: align the keys of the mapping that starts on line %d " +
		"in one column"},
	{"expected '-' indicator", "'- ' is missing here: align the items of the list that starts on line %d in " +
		"one column"},
	{"could not find expected ':'", "': ' is missing after the key of line %d"},
	{"block sequence entries are not allowed", "unexpected '- ': start a list on the line after its key"},
}

// LoadDiag converts an error with which the YAML library ended when it read a text.
func LoadDiag(file, text string, err error) ir.Diag {
	pos := ir.Pos{File: file, Line: 1, Column: 1}
	var all *yaml.LoadErrors
	one := &yaml.LoadError{Message: err.Error()}
	if errors.As(err, &all) && len(all.Errors) > 0 {
		one = all.Errors[0]
	} else {
		errors.As(err, &one)
	}
	if one.Mark.Line > 0 {
		pos.Line, pos.Column = one.Mark.Line, max(one.Mark.Column, 1)
	}
	switch msg := strings.TrimPrefix(one.Message, "yaml: "); {
	case strings.Contains(msg, "no documents"):
		return ir.Diag{Pos: pos, Code: Empty, Msg: "the file is empty"}
	case strings.Contains(msg, "found multiple"):
		pos.Line = secondDocument(text)
		return ir.Diag{Pos: pos, Code: ManyDocuments, Msg: "the file contains more than one document; it must " +
			"contain one"}
	case strings.Contains(msg, "exceeded max depth"):
		return ir.Diag{Pos: pos, Code: TooLarge,
			Msg: fmt.Sprintf("the file has more than %d levels of nesting", maxDepth)}
	default:
		return ir.Diag{Pos: pos, Code: Syntax, Msg: syntaxWords(one, msg, charAt(text, pos))}
	}
}

// syntaxWords translates a message of the library, if we have a translation.
func syntaxWords(e *yaml.LoadError, msg string, at rune) string {
	var name string
	switch {
	case strings.Contains(msg, "cannot start any token") && at == '\t':
		return clearer[0].words
	case strings.Contains(msg, "cannot start any token"):
		return fmt.Sprintf("a value cannot start with %c: quote the text", at)
	case anchored(msg, &name) && strings.ContainsAny(name, "./*"):
		return fmt.Sprintf("*%s is not text here, because * starts an alias: quote it: \"*%s\"", name, name)
	case anchored(msg, &name):
		return fmt.Sprintf("*%s refers to nothing: no earlier value has the anchor &%s", name, name)
	}
	for _, c := range clearer {
		if !strings.Contains(msg, c.found) {
			continue
		}
		if strings.Contains(c.words, "%d") {
			return fmt.Sprintf(c.words, max(e.ContextMark.Line, 1))
		}
		return c.words
	}
	if e.ContextMsg != "" {
		return e.ContextMsg + ": " + msg
	}
	return msg
}

// anchored extracts the name from the library's message about an undefined anchor.
func anchored(msg string, name *string) bool {
	_, err := fmt.Sscanf(msg, "unknown anchor %s referenced", name)
	*name = strings.Trim(*name, "'")
	return err == nil
}

// charAt returns the character at a position in the text, a space if there is none.
func charAt(text string, p ir.Pos) rune {
	line := 0
	for s := range strings.Lines(text) {
		line++
		if line != p.Line {
			continue
		}
		if r := []rune(s); p.Column <= len(r) {
			return r[p.Column-1]
		}
	}
	return ' '
}

// secondDocument returns the line on which a second document starts.
func secondDocument(text string) int {
	line, begun := 0, false
	for s := range strings.Lines(text) {
		line++
		s = strings.TrimRight(s, " \t\r\n")
		switch {
		case strings.HasPrefix(s, "---"):
			if begun {
				return line
			}
			begun = true
		case s != "" && s[0] != '#' && s[0] != '%':
			begun = true
		}
	}
	return 1
}

// encoding finds the first byte that is not valid UTF-8 text. Files with a UTF-16 byte-order mark are left to the
// library, which reads them.
func encoding(file string, data []byte) (d ir.Diag, bad bool) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return d, false
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		what := ""
		switch {
		case r == utf8.RuneError && n == 1:
			what = "is not UTF-8; save the file as UTF-8"
		case r < ' ' && !strings.ContainsRune("\t\n\r", r):
			what = "is a control character; is this a text file?"
		}
		if what != "" {
			return ir.Diag{Pos: place(file, data, i), Code: Syntax, Msg: fmt.Sprintf("byte 0x%02x %s", data[i], what)},
				true
		}
		i += n
	}
	return d, false
}

// notJSON reports why a .json file is not JSON. The YAML reader, which reads the file afterwards, would accept some
// files that no JSON parser accepts.
func notJSON(file string, data []byte) (d ir.Diag, bad bool) {
	if !strings.EqualFold(filepath.Ext(file), ".json") {
		return d, false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var value json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, &value); len(bytes.TrimSpace(data)) == 0 || !errors.As(err, &syntax) {
		return d, false
	}
	i := max(int(syntax.Offset)-1, 0)
	d = ir.Diag{Pos: place(file, data, i), Code: Syntax, Msg: "this is not JSON: " + syntax.Error()}
	before := bytes.TrimRight(data[:i], " \t\r\n")
	if c := data[min(i, len(data)-1)]; (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")) {
		d.Pos = place(file, data, len(before)-1)
		d.Msg = fmt.Sprintf("this is not JSON: remove the comma before %c", c)
	}
	return d, true
}

// place returns the position of byte i of a file.
func place(file string, data []byte, i int) ir.Pos {
	head := data[:i]
	line := head[bytes.LastIndexByte(head, '\n')+1:]
	return ir.Pos{File: file, Line: bytes.Count(head, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1}
}
