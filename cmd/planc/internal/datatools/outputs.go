package datatools

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/tokenfiles"
)

// checkOutputs refuses to write a file that is also an input, under whatever name. flag is the flag to change.
func checkOutputs(flag string, outputs, inputs []string) error {
	for _, out := range outputs {
		written, err := os.Stat(out)
		if err != nil {
			continue // it does not exist yet
		}
		for _, in := range inputs {
			if read, err := os.Stat(in); err == nil && os.SameFile(written, read) {
				return flagError("", "%s would be overwritten, but it is an input (%s): choose another name with %s",
					out, in, flag)
			}
		}
	}
	return nil
}

// tokenFiles returns the paths that a file of tokens may have: its own and that of its Megatron index.
func tokenFiles(path string) []string { return []string{path, tokenfiles.IndexOf(path)} }

// shardFiles returns the existing files that are named like shards of a file of tokens.
func shardFiles(path string) []string {
	ext := filepath.Ext(path)
	prefix := filepath.Base(strings.TrimSuffix(path, ext)) + "_"
	entries, _ := os.ReadDir(filepath.Dir(path)) // a folder that cannot be read is reported when it is written to
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), ext) {
			found = append(found, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return found
}
