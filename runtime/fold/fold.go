package fold

import "strings"

// Columns is how many a screen has.
const Columns = 80

// Indent is before what goes on of a message, so that a line that begins with a file's name is a message of its own.
const Indent = 4

// Lines breaks the lines of a text that are wider than so many columns between words; what goes on of a line stands
// indent columns to the right. Lines that begin with a space are laid out already, and a word that is wider stays
// whole: so do paths and numbers with their units.
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
	words := WithUnits(strings.Split(line, " ")) // also of several spaces, which a file's name may have
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

// WithUnits joins numbers and their units.
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
