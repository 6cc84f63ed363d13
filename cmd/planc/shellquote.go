package main

import (
	"path/filepath"
	"regexp"
	"strings"
)

// plainWord matches words that need no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\p{L}\p{N}_@%+=:,./-]+$`)

// shellWord quotes a word for a shell.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellPath quotes a path for a shell, with slashes. It prefixes a path that looks like a flag with "./".
func shellPath(path string) string {
	path = filepath.ToSlash(path)
	if strings.HasPrefix(path, "-") && path != "-" {
		path = "./" + path
	}
	return shellWord(path)
}
