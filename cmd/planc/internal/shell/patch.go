package shell

import (
	"path/filepath"
	"strings"
)

// Patch returns the command that applies a unified diff from standard input; "" if it cannot be applied, because it
// changes standard input or several files outside the current folder. patch takes only the last part of a file's path
// without -p0, and refuses paths that leave the current folder unless its argument names the file.
func Patch(diff string) string {
	command, files := "patch", 0
	before := ""
	for line := range strings.Lines(diff) {
		name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "+++ ")
		isHeader := ok && strings.HasPrefix(before, "--- ")
		before = line
		if !isHeader {
			continue
		}
		files++
		switch {
		case name == standardInput:
			return ""
		case !filepath.IsLocal(name):
			command = "patch " + QuotePath(name)
		case strings.Contains(filepath.ToSlash(name), "/") && command == "patch":
			command = "patch -p0"
		}
	}
	if files > 1 && command != "patch" && command != "patch -p0" {
		return ""
	}
	return command
}

// standardInput stands for standard input in the header of a diff.
const standardInput = "standard input"
