package layout

import "regexp"

// Colours of a terminal (SGR). Text has the same meaning without colours.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// verdicts lists the words of screens and messages that are coloured: the first group of each pattern.
var verdicts = []struct {
	pattern *regexp.Regexp
	colour  string
}{
	// must precede the next pattern, which does not match a coloured "fits"
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

// Colour returns a text with its verdicts in colours.
func Colour(text string) string {
	for _, v := range verdicts {
		at := v.pattern.FindAllStringSubmatchIndex(text, -1)
		for i := len(at) - 1; i >= 0; i-- { // from the end, so that earlier positions stay valid
			from, to := at[i][2], at[i][3]
			text = text[:from] + v.colour + text[from:to] + plain + text[to:]
		}
	}
	return text
}
