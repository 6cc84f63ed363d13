package data

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file of the bytes and returns its path.
func write(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// u16 is the tokens 0..n-1 in nanoGPT's format.
func u16(tokens ...int) []byte {
	var b []byte
	for _, v := range tokens {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func count(n int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = i
	}
	return tokens
}

// shard is an llm.c file.
func shard(magic, version, n uint32, payload []byte) []byte {
	h := make([]byte, shardHeader)
	binary.LittleEndian.PutUint32(h, magic)
	binary.LittleEndian.PutUint32(h[4:], version)
	binary.LittleEndian.PutUint32(h[8:], n)
	return append(h, payload...)
}

func open(t testing.TB, spec Spec) *Set {
	t.Helper()
	s, err := Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// one is a training source of weight 1 for each path.
func one(paths ...string) (sources []Source) {
	for _, p := range paths {
		sources = append(sources, Source{p, 1})
	}
	return sources
}

// sample is what Train or Valid gave: tokens and labels without the masked rest.
type sample struct{ tokens, labels []int32 }

func get(t testing.TB, read func(int64, []int32, []int32) (int, error), g int64, seqLen int) sample {
	t.Helper()
	x, y := make([]int32, seqLen), make([]int32, seqLen)
	for i := range x {
		x[i], y[i] = -1, -1
	}
	n, err := read(g, x, y)
	if err != nil {
		t.Fatal(err)
	}
	for i := n; i < seqLen; i++ {
		if x[i] != 0 || y[i] != 0 {
			t.Errorf("sample %d: masked position %d holds token %d and label %d, want 0 and 0", g, i, x[i], y[i])
		}
	}
	return sample{x[:n], y[:n]}
}

// wantInputError wants an InputError of that text, in which DIR stands for dir.
func wantInputError(t *testing.T, err error, dir, want string) {
	t.Helper()
	var input *InputError
	if !errors.As(err, &input) {
		t.Errorf("got %v (%T), want an InputError", err, err)
		return
	}
	got := filepath.ToSlash(strings.ReplaceAll(err.Error(), dir, "DIR"))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
