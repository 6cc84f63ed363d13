package shell

import (
	"path/filepath"
	"regexp"
	"strings"
)

// plainWord matches words that need no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\p{L}\p{N}_@%+=:,./-]+$`)

// Quote quotes a word for a shell.
func Quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// QuotePath quotes a path for a shell, with slashes. It prefixes a path that looks like a flag with "./".
func QuotePath(path string) string {
	path = filepath.ToSlash(path)
	if strings.HasPrefix(path, "-") && path != "-" {
		path = "./" + path
	}
	return Quote(path)
}

// Slashed returns a path with slashes, as messages print it on every platform.
func Slashed(path string) string { return strings.ReplaceAll(path, "\\", "/") }
