package console

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Only a terminal has colours, and NO_COLOR turns them off; a name cannot bring its own.
func TestColoursOfTerminals(t *testing.T) {
	for _, colour := range []bool{false, true} {
		var b bytes.Buffer
		fmt.Fprint(&Stream{To: &b, colour: colour}, "note: \x1b[31mx\n")
		if got := b.String(); strings.Contains(got, "\x1b[33m") != colour ||
			!strings.HasSuffix(got, `: \u001b[31mx`+"\n") {
			t.Errorf("colour %v: %q", colour, got)
		}
	}
	if tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil {
		defer tty.Close()
		t.Setenv("TERM", "xterm")
		for value, want := range map[string]bool{"": true, "1": false} {
			t.Setenv("NO_COLOR", value)
			if wantsColour(tty) != want {
				t.Errorf("NO_COLOR=%q: %v", value, !want)
			}
		}
	}
	if wantsColour(&bytes.Buffer{}) {
		t.Error("a buffer has colours")
	}
}
