package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly is what the generators print.
func TestCurrent(t *testing.T) {
	known := map[string]bool{}
	for _, f := range files {
		asm, stubs, err := generate(f.emit)
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		for name, want := range map[string][]byte{f.name + "_amd64.s": asm, f.name + "_amd64.go": stubs} {
			known[name] = true
			if got, err := os.ReadFile(filepath.Join("..", folder, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("runtime/cpu/%s is not what its generator prints (%v); go run ./avo, in tools/, writes it", name, err)
			}
		}
	}
	all, err := filepath.Glob(filepath.Join("..", folder, "z*_amd64.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if !known[filepath.Base(path)] {
			t.Errorf("%s: no row of files writes it", path)
		}
	}
}
