package console

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/runtime/visible"
)

// Stream is an output stream. It escapes control characters ([visible.Text]), and several goroutines can write to it.
type Stream struct {
	mu     sync.Mutex
	To     io.Writer
	colour bool // verdicts are coloured
}

// Write writes text with its control characters escaped, and its verdicts coloured.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.colour {
		return visible.Writer(s.To).Write(p)
	}
	_, err := io.WriteString(s.To, layout.Colour(visible.Text(string(p))))
	return len(p), err
}

// line replaces the current line of a terminal by a text, which may be empty.
func (s *Stream) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.To, EraseLine+visible.Text(text))
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// wantsColour reports whether output to w is coloured: if w is a terminal and NO_COLOR is empty (https://no-color.org).
func wantsColour(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && IsTerminal(w) }
