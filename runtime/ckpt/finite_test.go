package ckpt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// rawContent is a file of one F32 tensor with given bits, written without a check.
func rawContent(bits []byte) []Content {
	fill := func(_ int, w io.Writer) error { _, err := w.Write(bits); return err }
	return []Content{{"model.safetensors", []Tensor{{"w", F32, []int64{int64(len(bits) / 4)}}}, nil, fill}}
}

// A tensor that is not finite is not written.
func TestWriteFloatsWantsFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := WriteFloats(io.Discard, []float32{1, 2, float32(bad)})
		var e *NonfiniteError
		if want := fmt.Sprintf("element 2 is %v, which is not a finite number", bad); !errors.As(err, &e) ||
			err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := WriteFloats(io.Discard, []float64{math.MaxFloat64, -math.MaxFloat64, 5e-324}); err != nil {
		t.Error(err)
	}
}

// A checkpoint that is not finite, as older programs saved them, is skipped by Newest and refused by Open.
func TestNonfiniteCheckpointsAreRefused(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 4, 1)
	saved, err := Save(dir, Manifest{Step: 5}, rawContent([]byte{0, 0, 0, 0, 0, 0, 0x80, 0x7f}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(saved.Path)
	want := "checkpoint: " + filepath.Join(saved.Path, "model.safetensors") +
		": element 1 of tensor w is +Inf, which is not a finite number; training cannot continue from it"
	var input *InputError
	if !errors.As(err, &input) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if c, skipped, err := Newest(dir); err != nil || c == nil || c.Manifest.Step != 4 || len(skipped) != 1 {
		t.Errorf("newest is %v, %v, %v", c, skipped, err)
	}
}

// The scan finds the element wherever the file is cut into writes.
func TestFiniteScan(t *testing.T) {
	for _, tt := range []struct {
		d    DType
		bits []byte
		want string
	}{
		{F64, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x7f}, "element 2 of tensor b is +Inf, which is not a finite number"},
		{F32, []byte{0, 0, 0x80, 0xff}, "element 2 of tensor b is -Inf, which is not a finite number"},
		{BF16, []byte{0x80, 0x7f}, "element 2 of tensor b is +Inf, which is not a finite number"},
		{F16, []byte{1, 0x7c}, "element 2 of tensor b is NaN, which is not a finite number"},
		{F32, []byte{0xff, 0xff, 0x7f, 0x7f}, ""},
		{I64, bytes.Repeat([]byte{0xff}, 8), ""},
	} {
		var file bytes.Buffer
		w, err := NewWriter(&file, []Tensor{{"a", U8, []int64{3}}, {"b", tt.d, []int64{4}}, {"c", F32, []int64{0}}},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte{0xff, 0xff, 0xff})
		for i := range 4 {
			if i == 2 {
				w.Write(tt.bits)
			} else {
				w.Write(make([]byte, len(tt.bits)))
			}
		}
		for cut := 1; cut <= file.Len(); cut++ {
			s := &finiteScan{size: int64(file.Len())}
			for b := file.Bytes(); len(b) > 0; b = b[min(cut, len(b)):] {
				s.Write(b[:min(cut, len(b))])
			}
			got := ""
			if s.err != nil {
				got = s.err.Error()
			}
			if got != tt.want {
				t.Fatalf("%s in writes of %d bytes: %q, want %q", tt.d, cut, got, tt.want)
			}
		}
	}
	for _, junk := range [][]byte{nil, {1}, bytes.Repeat([]byte{0xff}, 40), append(make([]byte, 8), 0xff, 0xff,
		0xff, 0xff)} {
		if s := (&finiteScan{size: int64(len(junk))}); true {
			s.Write(junk)
			if s.err != nil {
				t.Errorf("what is no safetensors file: %v", s.err)
			}
		}
	}
}

// A model's files are not scanned when they are opened, only those of checkpoints: whoever reads the tensors checks
// them.
func TestOpenFileDoesNotScan(t *testing.T) {
	saved, err := Save(t.TempDir(), Manifest{Step: 5}, rawContent([]byte{0, 0, 0xc0, 0x7f}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(saved.Path, manifestName)); err != nil {
		t.Fatal(err)
	}
	w, err := OpenWeights(saved.Path)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
}

// A checkpoint whose header was damaged so that tensors overlap is damaged like any other: it is skipped.
func TestOverlappingTensorsAreDamage(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 4, 1)
	fill := func(i int, w io.Writer) error { return WriteFloats(w, make([]float32, []int{10, 4, 4}[i])) }
	tensors := []Tensor{{"v", F32, []int64{10}}, {"w", F32, []int64{4}}, {"x", F32, []int64{4}}}
	saved, err := Save(dir, Manifest{Step: 5}, []Content{{"model.safetensors", tensors, nil, fill}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(saved.Path, "model.safetensors")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from, to := []byte(`"shape":[10],"data_offsets":[0,40]`), []byte(`"shape":[16],"data_offsets":[0,64]`)
	if !bytes.Contains(b, from) {
		t.Fatalf("the header is %q", b[:200])
	}
	if err := os.WriteFile(path, bytes.Replace(b, from, to, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	want := "checkpoint: " + path + " is damaged: its content is not what was saved (the SHA-256 differs)"
	_, err = Open(saved.Path)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if c, skipped, err := Newest(dir); err != nil || c == nil || c.Manifest.Step != 4 || len(skipped) != 1 {
		t.Errorf("newest is %v, %v, %v", c, skipped, err)
	}
}
