//go:build cuda && linux

package gemmchoice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is missing, or of another library or GPU, or that is damaged, ends the run.
func TestRejectsChoices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "choices.json")
	t.Setenv(File, path)
	rejected := func(want string) {
		t.Helper()
		if _, err := Open("H100", "13.1.0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	rejected("no such file or directory; PLANC_TIME_PRODUCTS=1 writes it")
	for text, want := range map[string]string{
		"{": "unexpected end of JSON input",
		`{"gpu": "A100", "cublaslt": "13.1.0"}`: "was measured on A100 with cuBLASLt 13.1.0, and this is H100 with " +
			"cuBLASLt 13.1.0: measure again with PLANC_TIME_PRODUCTS=1",
		`{"gpu": "H100", "cublaslt": "13.2.0"}`: "with cuBLASLt 13.2.0",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		rejected(want)
	}
	for text, want := range map[string]string{"0": "odd length", "2a": "has 64 bytes, not 1"} {
		if _, err := (Choice{Algorithm: text}).Decode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
