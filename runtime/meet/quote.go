package meet

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/visible"
)

// maxQuoted and maxText are the maximum number of bytes shown of a word, and of a longer text, from another process.
const (
	maxQuoted = 200
	maxText   = 16 << 10
)

// oneLine escapes the line ends and tabs that [visible.Text] keeps.
var oneLine = strings.NewReplacer("\r", `\u000d`, "\n", `\u000a`, "\t", `\u0009`)

// quoted formats a word from another process for a message: on one line, escaped, and shortened.
func quoted(s string) string { return shortened(oneLine.Replace(Lines(s)), maxQuoted) }

// Lines escapes a text from another process, except line ends and tabs.
func Lines(s string) string { return visible.Text(s) }

// shortened returns the first most bytes of a longer text, and its length.
func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:limit], ""), len(s))
}
