package gemm

import "testing"

// Three vectors of columns are used unless they compute more padding columns than two vectors, and more
// than a few.
func TestWidePanels(t *testing.T) {
	e := &engine[float32]{rows: 12, cols: 32, wide: &engine[float32]{rows: 8, cols: 48}}
	for n, wide := range map[int]bool{1: false, 33: true, 48: true, 64: false, 128: false, 256: false, 384: true,
		512: true, 1024: true, 50257: true} {
		if got := e.forCols(n) == e.wide; got != wide {
			t.Errorf("%d columns: wide %v, want %v", n, got, wide)
		}
	}
	e.wide = nil
	if e.forCols(384) != e {
		t.Error("without a wide engine there is another")
	}
}
