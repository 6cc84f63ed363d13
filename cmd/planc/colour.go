package main

import (
	"io"
	"os"
	"regexp"
)

// Colours of a terminal (SGR); what is written in them says the same without.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// verdicts are the words of screens and messages that are coloured, and how. What is coloured is the first group.
var verdicts = []struct {
	pattern *regexp.Regexp
	colour  string
}{
	// first: a colour before "fits" hides it from the next
	{regexp.MustCompile(`(?m)^memory .*?\b(fits \([^)\n]*\)).*(?:\n .*)*\ntight\b`), yellow},
	{regexp.MustCompile(`(?m)^memory .*?\b(fits \([^)\n]*\))`), green},
	{regexp.MustCompile(`(?m)^memory .*?\b(does not fit: [^\n]*)`), red},
	{regexp.MustCompile(`(?m)  (no fit)\b`), red},
	{regexp.MustCompile(`(?m)^(tight)\b`), yellow},
	{regexp.MustCompile(`(?m)^planc: (no plan fits)\b`), red},
	{regexp.MustCompile(`(?m)^(note|warning): `), yellow},
	{regexp.MustCompile(`(?m)^\S.{11}(ok)  `), green},
	{regexp.MustCompile(`(?m)^\S.{11}(missing)  `), yellow},
	{regexp.MustCompile(`(?m)^\S.{11}(failed)  `), red},
	{regexp.MustCompile(`(?m)( \[[A-Z][A-Za-z]+\])$`), red},
}

// coloured sets the verdicts in a text in their colours.
func coloured(text string) string {
	for _, v := range verdicts {
		at := v.pattern.FindAllStringSubmatchIndex(text, -1)
		for i := len(at) - 1; i >= 0; i-- { // from the end, so that places before stay as they are
			from, to := at[i][2], at[i][3]
			text = text[:from] + v.colour + text[from:to] + plain + text[to:]
		}
	}
	return text
}

// wantsColour reports whether what is written to w is shown in colours: on a terminal, unless NO_COLOR says otherwise
// (https://no-color.org).
func wantsColour(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && isTerminal(w) }
