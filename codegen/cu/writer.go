package cu

import (
	"fmt"
	"io"
	"strings"
)

// A writer writes lines, indented by blocks. It keeps the first error and writes nothing more then, so that what prints
// reads like what is printed.
type writer struct {
	w     io.Writer
	depth int
	err   error
}

// line writes a line.
func (w *writer) line(format string, args ...any) {
	if w.err != nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text = strings.Repeat("\t", w.depth) + text
	}
	_, w.err = io.WriteString(w.w, text+"\n")
}

// block writes a head, lines in braces, and the end.
func (w *writer) block(head string, body func()) {
	w.line("%s {", head)
	w.depth++
	body()
	w.depth--
	w.line("}")
}
