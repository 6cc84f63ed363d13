package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
)

// A file is no terminal, nor is a buffer; and so a search writes no line to them that it takes away again.
func TestNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if console.IsTerminal(f) || console.IsTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is taken for a terminal")
	}
	defer func(was time.Duration) { console.Patience = was }(console.Patience)
	console.Patience = time.Nanosecond
	var stdout bytes.Buffer
	if code := run([]string{"plan", "--model", "llama3-8b", "--cluster", "dgx-h100", "--global-batch", "128",
		"--seq-len", "8192"}, nil, &stdout, f); code != 0 || stdout.Len() == 0 {
		t.Errorf("code %d, %q", code, stdout.String())
	}
	if text, err := os.ReadFile(f.Name()); err != nil || strings.ReplaceAll(string(text), "searching ...\n", "") != "" {
		t.Errorf("stderr has %q, %v", text, err)
	}
}
