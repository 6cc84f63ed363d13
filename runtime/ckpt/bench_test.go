package ckpt

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkSave saves checkpoints of 2 files of 128 MiB, in turns with plain writes of the same bytes: 1 MiB at a time,
// synced at the end. The metric "plain" is the time of the plain writes over that of the saves; it is at least 0.8 on a
// machine with an idle core. -benchtime 20x reduces noise. TMPDIR selects the disk.
func BenchmarkSave(b *testing.B) {
	const elems = 32 << 20
	x := make([]float32, 1<<18)
	for i := range x {
		x[i] = float32(i) * 1.1
	}
	var files []Content
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		files = append(files, Content{Name: name,
			Tensors: []Tensor{{Name: "x", DType: F32, Shape: []int64{elems}}},
			Fill: func(_ int, w io.Writer) error {
				for range elems / len(x) {
					if err := WriteFloats(w, x); err != nil {
						return err
					}
				}
				return nil
			}})
	}
	var saves, plain time.Duration
	for range b.N {
		dir := b.TempDir()
		begun := time.Now()
		for _, c := range files {
			writePlain(b, filepath.Join(dir, c.Name), 4*elems)
		}
		plain += time.Since(begun)
		for _, c := range files {
			if err := os.Remove(filepath.Join(dir, c.Name)); err != nil {
				b.Fatal(err)
			}
		}
		begun = time.Now()
		saved, err := Save(dir, Manifest{Step: 1}, files)
		saves += time.Since(begun)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(saved.Path); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(size(files))
	b.ReportMetric(plain.Seconds()/saves.Seconds(), "plain")
	b.ReportMetric(float64(size(files))*float64(b.N)/saves.Seconds()/1e6, "saved-MB/s")
}

// writePlain writes a file as a program that does nothing else would.
func writePlain(b *testing.B, path string, bytes int) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for range bytes / len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}
