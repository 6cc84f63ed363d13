// Package visible makes text safe to show on a terminal. Names, paths and file contents can hold characters that a
// terminal interprets, that hide others, or that reverse the order in which a line is read. [Text] escapes them, and
// [Writer] escapes everything that is written through it. Training binaries and planc itself print with it.
//
// It does not shorten text, and it does not decide which names are allowed.
package visible

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with all characters escaped that are not printable: control characters, format characters such as
// bidirectional overrides and zero-width spaces, and private and unassigned code points become \u202e, as in JSON.
// Bytes that are not UTF-8 become \x9b. Spaces, tabs and line ends stay.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"), Rune(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// plain reports whether s has only printable ASCII and line ends, as most text has.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return true
}

// Rune reports whether Text leaves a character as it is.
func Rune(r rune) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
}

// Name reports whether a name can be shown unescaped on one line.
func Name(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '\n' || r == '\t' || !Rune(r)
	})
}

// Writer returns a writer that passes what is written to it through [Text]. Each call must write whole characters.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

func (w writer) Write(p []byte) (int, error) {
	text := Text(string(p))
	n, err := io.WriteString(w.to, text)
	if n == len(text) {
		return len(p), err
	}
	return min(n, len(p)), err
}
