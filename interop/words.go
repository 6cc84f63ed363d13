package interop

import "strings"

// Joined returns a list in words: "a", "a and b", "a, b and c".
func Joined(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
