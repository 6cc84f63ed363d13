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
	for _, s := range sets {
		files, err := generate(s.file, s.zmm)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			known[name] = true
			if got, err := os.ReadFile(filepath.Join("..", "..", folder, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("runtime/vec/%s is not what its generator prints (%v); go run ./avo/vector, in tools/, "+
					"writes it", name, err)
			}
		}
	}
	all, err := filepath.Glob(filepath.Join("..", "..", folder, "z*_amd64.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if !known[filepath.Base(path)] {
			t.Errorf("%s: no set writes it", path)
		}
	}
}
