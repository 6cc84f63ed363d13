package meet

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/visible"
)

// quotedMost and textMost are how many bytes of a word, and of a text of several lines, are shown of what another
// process sent.
const (
	quotedMost = 200
	textMost   = 16 << 10
)

// oneLine escapes what [visible.Text] leaves.
var oneLine = strings.NewReplacer("\r", `\u000d`, "\n", `\u000a`, "\t", `\u0009`)

// quoted returns a word that another process sent as a message shows it: on one line, escaped, and not too long.
func quoted(s string) string { return shortened(oneLine.Replace(Lines(s)), quotedMost) }

// Lines returns a text that another process sent as it may be shown: escaped, but for ends of lines and tabs.
func Lines(s string) string { return visible.Text(s) }

// shortened returns the first most bytes of a text that is longer, and how long it is.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}
