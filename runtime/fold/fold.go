package fold

import "strings"

// Columns is the width of a screen, in columns.
const Columns = 80

// Indent is the indent, in columns, of continued lines of a message. A line that starts with a file name is thus
// always a message of its own.
const Indent = 4

// Lines wraps the lines of a text that are wider than columns. Continued lines are indented by indent columns. Lines
// that begin with a space or tab are already laid out and stay as they are. A word that is wider than the screen stays
// whole, and so does a number with its unit.
func Lines(text string, columns, indent int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if Width(line) > columns && line[0] != ' ' && line[0] != '\t' {
			lines[i] = foldedLine(line, columns, indent)
		}
	}
	return strings.Join(lines, "\n")
}

func foldedLine(line string, columns, indent int) string {
	words := WithUnits(strings.Split(line, " ")) // keeps runs of spaces, which a file name may contain
	out, at := words[0], Width(words[0])
	for _, w := range words[1:] {
		if at+1+Width(w) > columns {
			out, at = out+"\n"+strings.Repeat(" ", indent)+w, indent+Width(w)
			continue
		}
		out, at = out+" "+w, at+1+Width(w)
	}
	return out
}

// WithUnits joins each number with the unit that follows it.
func WithUnits(pieces []string) (words []string) {
	number := false
	for _, w := range pieces {
		if number && units[strings.Trim(w, ".,:;)")] {
			words[len(words)-1] += " " + w
		} else {
			words = append(words, w)
		}
		number = w != "" && w[len(w)-1] >= '0' && w[len(w)-1] <= '9'
	}
	return words
}

var units = map[string]bool{"%": true, "s": true, "ms": true, "µs": true, "min": true, "h": true, "KiB": true,
	"MiB": true, "GiB": true, "TiB": true, "GB/s": true,
	"GPU": true, "GPUs": true, "×": true}
