package tree

import "strings"

// source is the text of a file.
type source struct {
	text   string
	syntax Syntax
}

// newline returns the line end of the file.
func (s source) newline() string {
	if i := lineLength(s.text); i > 0 && i < len(s.text) && s.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineStart returns the offset of the line that has an offset.
func (s source) lineStart(at int) int { return strings.LastIndexByte(s.text[:at], '\n') + 1 }

// lineEnd returns the offset of the end of the line that has an offset, before its line break.
func (s source) lineEnd(at int) int {
	end := at + lineLength(s.text[at:])
	if end > at && end < len(s.text) && s.text[end-1] == '\r' {
		end--
	}
	return end
}

// nextLine returns the offset of the line after the one that has an offset.
func (s source) nextLine(at int) int { return min(at+lineLength(s.text[at:])+1, len(s.text)) }

// isBlankBefore reports whether only spaces precede an offset on its line.
func (s source) isBlankBefore(at int) bool {
	return strings.TrimLeft(s.text[s.lineStart(at):at], " \t") == ""
}

// isBlankAfter reports whether only spaces and comments that end on its line follow an offset.
func (s source) isBlankAfter(at int) bool {
	line := s.text[:at+lineLength(s.text[at:])]
	return skipSpace(line, at, s.syntax) == len(line)
}

// unit returns the indentation of one level.
func (s source) unit() string {
	for line := range strings.Lines(s.text) {
		content := strings.TrimLeft(line, " \t")
		if len(content) < len(line) && strings.TrimSpace(content) != "" && content[0] != '*' && content[0] != '#' {
			return line[:len(line)-len(content)]
		}
	}
	if s.syntax.isJSON() {
		return "    "
	}
	return "  "
}

// comma returns the offset after the comma that follows an offset. ok is false if none follows.
func (s source) comma(at int) (after int, ok bool) {
	next := skipSpace(s.text, at, s.syntax)
	if next < len(s.text) && s.text[next] == ',' {
		return next + 1, true
	}
	return at, false
}

// freshLine returns a line break, unless a line starts at the offset.
func (s source) freshLine(at int) string {
	if at == s.lineStart(at) {
		return ""
	}
	return "\n"
}

// blankLine returns a line break if the file does not end in an empty line.
func (s source) blankLine() string {
	text := strings.ReplaceAll(s.text, "\r", "")
	if text == "" || strings.HasSuffix(text, "\n\n") {
		return ""
	}
	return "\n"
}
