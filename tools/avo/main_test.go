package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly equals the output of the generators.
func TestCurrent(t *testing.T) {
	known := map[string]bool{}
	for _, f := range files {
		asm, stubs, err := generate(f.name, f.emit, f.avx2)
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		for name, want := range map[string][]byte{f.name + "_amd64.s": asm, f.name + "_amd64.go": stubs} {
			known[name] = true
			if got, err := os.ReadFile(filepath.Join("..", root, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs from its generator's output (%v): run 'go run ./avo' in tools/", name, err)
			}
		}
	}
	for _, pattern := range []string{"runtime/cpu/asm/z*_amd64.*", "bench/*/z*_amd64.*"} {
		all, err := filepath.Glob(filepath.Join("..", root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			if name, err := filepath.Rel(filepath.Join("..", root), path); err != nil ||
				!known[filepath.ToSlash(name)] {
				t.Errorf("%s: no row of files writes it", path)
			}
		}
	}
}
