package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
)

// Console is planc's terminal: its streams, and what -q, -v and a terminal change about them.
type Console struct {
	Stdin          io.Reader
	Stdout, Stderr *Stream
	Quiet, Verbose bool
	terminal       bool // stderr is a terminal
}

// New returns a console on streams. isPlain turns colours of stdout off.
func New(stdin io.Reader, stdout, stderr io.Writer, isPlain bool) *Console {
	return &Console{Stdin: stdin, Stdout: &Stream{To: stdout, colour: wantsColour(stdout) && !isPlain},
		Stderr: &Stream{To: stderr, colour: wantsColour(stderr)}, terminal: IsTerminal(stderr)}
}

// Patience is the time after which long work is reported. Tests that compare stderr increase it.
var Patience = 700 * time.Millisecond

// RunWithNotice runs work, and prints a notice if it takes long.
func (c *Console) RunWithNotice(what string, work func() error) error {
	if c.Quiet {
		return work()
	}
	printed := make(chan struct{})
	notice := time.AfterFunc(Patience, func() { defer close(printed); c.Notef("%s ...", what) })
	defer func() {
		if !notice.Stop() {
			<-printed // so that the notice precedes the output of the work
		}
	}()
	return work()
}

// Notef prints a line on stderr, unless -q. It wraps only text that begins with "note: ": other text is a screen, or a
// command to copy.
func (c *Console) Notef(format string, args ...any) {
	if c.Quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "note: ") {
		text = layout.Fold(text)
	}
	fmt.Fprintln(c.Stderr, text)
}

// Note prints a text with a label, in the columns of a screen, with notef.
func (c *Console) Note(label, text string) {
	c.Notef("%s", strings.TrimSuffix(layout.Prose(label, 9, text), "\n"))
}

// Print writes a result to stdout. It returns write errors, so that a full disk does not look like success.
func (c *Console) Print(result string) error {
	if _, err := io.Copy(c.Stdout, bytes.NewBufferString(result)); err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err // without "write /dev/stdout"
		}
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// PrintJSON writes one document to stdout.
func (c *Console) PrintJSON(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("planc: a document cannot be encoded: %v", err))
	}
	return c.Print(b.String())
}

// mostRead is more than any file that the compiler takes; devices have no end.
const mostRead = 1 << 24

// Read gives the compiler files; - is stdin, which is read once.
func (c *Console) Read(path string) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, mostRead))
	}
	var text []byte
	err := c.RunWithNotice("reading standard input", func() (err error) {
		text, err = io.ReadAll(io.LimitReader(c.Stdin, mostRead))
		return err
	})
	c.Stdin = io.MultiReader(bytes.NewReader(text), c.Stdin) // again for who asks again
	return text, err
}

// Timed runs a step of compiling and, with -v, reports how long it took.
func (c *Console) Timed(what string, step func() (string, error)) error {
	start := time.Now()
	var result string
	err := c.RunWithNotice(what, func() (err error) { result, err = step(); return err })
	if err == nil && c.Verbose {
		c.Notef("%s %s, %.2f s", layout.Pad(what, 8), result, time.Since(start).Seconds())
	}
	return err
}
