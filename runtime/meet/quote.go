package meet

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quotedMost and textMost are how many bytes of a word, and of a text of several lines, are shown of what another process sent.
const (
	quotedMost = 200
	textMost   = 16 << 10
)

// quoted is a word that another process sent as a message shows it: on one line, not too long, and escaped where a terminal would
// obey a character or show the word in another order.
func quoted(s string) string { return Quote(s, quotedMost, "") }

// Quote returns at most most bytes of a text that another process sent, in which characters are escaped that do not print, but
// for those of keep.
func Quote(s string, most int, keep string) string {
	var out strings.Builder
	for i, c := range s {
		if out.Len() >= most {
			fmt.Fprintf(&out, "... (%d bytes)", len(s))
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case unicode.IsPrint(c), strings.ContainsRune(keep, c):
			out.WriteRune(c)
		default: // controls, and what changes the direction of writing
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	return out.String()
}
