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

// clearer says what a user can do about what the library reports. In words, %d is the line on which the part begins
// that is not complete.
var clearer = []struct{ found, words string }{
	{"a tab character", "a tab stands here; YAML is indented with spaces"},
	{"mixed spaces and tabs", "a tab stands here; YAML is indented with spaces"},
	{"mapping values are not allowed", "':' where no key can stand; the keys of a mapping begin in one column, and " +
		"text that holds ': ' is quoted"},
	{"expected ',' or '}'", "',' or '}' is wanted; the { of line %d is not closed"},
	{"expected ',' or ']'", "',' or ']' is wanted; the [ of line %d is not closed"},
	{"unexpected end of stream", "the file ends inside the quotes that open on line %d"},
	{"did not find expected key", "a key is wanted; the keys of the mapping that begins on line %d stand in " +
		"one column"},
	{"expected '-' indicator", "'- ' is wanted; the items of the list that begins on line %d stand in one column"},
	{"could not find expected ':'", "': ' is wanted after the key of line %d"},
	{"block sequence entries are not allowed", "'- ' where no list can stand; a list begins on the line after its key"},
}

// syntaxDiag is the library's error as ours.
func syntaxDiag(file, text string, err error) ir.Diag {
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
		return ir.Diag{Pos: pos, Code: ManyDocuments, Msg: "the file holds more than one document; one is wanted"}
	case strings.Contains(msg, "exceeded max depth"):
		return ir.Diag{Pos: pos, Code: TooLarge, Msg: fmt.Sprintf("the file holds more than %d levels", maxDepth)}
	default:
		return ir.Diag{Pos: pos, Code: Syntax, Msg: syntaxWords(one, msg, charAt(text, pos))}
	}
}

// syntaxWords is a message of the library's, in words that say what is wanted where we have them.
func syntaxWords(e *yaml.LoadError, msg string, at rune) string {
	var name string
	switch {
	case strings.Contains(msg, "cannot start any token") && at == '\t':
		return clearer[0].words
	case strings.Contains(msg, "cannot start any token"):
		return fmt.Sprintf("a value cannot begin with %c; quote the text", at)
	case anchored(msg, &name) && strings.ContainsAny(name, "./*"):
		return fmt.Sprintf("*%s is no text here: * begins an alias; quote it: \"*%s\"", name, name)
	case anchored(msg, &name):
		return fmt.Sprintf("*%s stands for nothing: no value before it is marked &%s", name, name)
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

// anchored takes the name from the library's message about an anchor that does not exist.
func anchored(msg string, name *string) bool {
	_, err := fmt.Sscanf(msg, "unknown anchor %s referenced", name)
	*name = strings.Trim(*name, "'")
	return err == nil
}

// charAt is the character at a place of the text, a space if there is none.
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

// secondDocument is the line on which a second document starts.
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

// encoding finds a byte that text in UTF-8 does not have. A file that begins with UTF-16's mark is left to the library,
// which reads it.
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
			what = "does not stand in text; is this a text file?"
		}
		if what != "" {
			return ir.Diag{Pos: place(file, data, i), Code: Syntax, Msg: fmt.Sprintf("byte 0x%02x %s", data[i], what)},
				true
		}
		i += n
	}
	return d, false
}

// notJSON finds what makes a file of that name no JSON; the YAML reader, to which it goes then, would let some of it
// pass that no other tool does.
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
		d.Msg = fmt.Sprintf("this is not JSON: a comma stands before %c; remove it", c)
	}
	return d, true
}

// place is where byte i of a file is.
func place(file string, data []byte, i int) ir.Pos {
	head := data[:i]
	line := head[bytes.LastIndexByte(head, '\n')+1:]
	return ir.Pos{File: file, Line: bytes.Count(head, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1}
}
