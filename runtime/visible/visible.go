// Package visible makes text safe to show: names, paths and file contents can hold characters that a terminal obeys,
// that hide others, or that reverse the order in which a line is read. [Text] escapes them, and [Writer] does so for
// everything that is written. Training binaries and planc itself print through it.
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

// Text returns s with every character escaped that is not printed as itself: control characters, format characters such
// as bidirectional overrides and zero-width spaces, private and unassigned code points as \u202e, as JSON writes them,
// and bytes that are no UTF-8 as \x9b. Spaces, tabs and ends of lines stay.
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

// plain reports whether s has only printable ASCII and ends of lines, as most text has.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return true
}

// Rune reports whether a character stays as it is.
func Rune(r rune) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
}

// Name reports whether a name can be shown as it is on one line.
func Name(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '\n' || r == '\t' || !Rune(r)
	})
}

// Writer returns a writer that writes [Text] of what is written to it. A character must be written as a whole.
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
