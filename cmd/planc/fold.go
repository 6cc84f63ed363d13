package main

import "strings"

// messageWidth is how wide a line of a message is at most: that of all screens. Tests that compare messages have more of it.
var messageWidth = screenWidth

// foldIndent is before what goes on of a message, so that a line that begins with a file's name is a message of its own.
const foldIndent = 4

// folded breaks the lines of a message that are wider than a screen between words. Lines that begin with a space are laid out
// already, and a word that is wider stays whole: so do paths and numbers with their units.
func folded(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if width(line) > messageWidth && line[0] != ' ' && line[0] != '\t' {
			lines[i] = foldedLine(line)
		}
	}
	return strings.Join(lines, "\n")
}

func foldedLine(line string) string {
	words := withUnits(strings.Split(line, " ")) // also of several spaces, which a file's name may have
	out, at := words[0], width(words[0])
	for _, w := range words[1:] {
		if at+1+width(w) > messageWidth {
			out, at = out+"\n"+strings.Repeat(" ", foldIndent)+w, foldIndent+width(w)
			continue
		}
		out, at = out+" "+w, at+1+width(w)
	}
	return out
}
