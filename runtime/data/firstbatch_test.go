package data

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sparse writes a .bin file of a size in bytes, of which only a few parts have other tokens than 0.
func sparse(t *testing.T, size int64) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "large.bin")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skipf("no room for a sparse file: %v", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	part := make([]byte, 64<<10)
	for i := range part {
		part[i] = byte(r.Uint32())
	}
	for _, at := range []int64{0, size / 2, size - int64(len(part))} {
		if _, err := f.WriteAt(part, at&^7); err != nil {
			t.Skipf("no room for a sparse file: %v", err)
		}
	}
	return path
}

// The first batch comes within a second, whatever the size of the file: opening reads as much of a file of 256 GiB as
// of one of 1 MiB. The best of several tries counts, because other programs may run.
func TestFirstBatchOfAnyFile(t *testing.T) {
	const seqLen, batch = 1024, 480
	for _, size := range []int64{1 << 20, 6 << 30, 256 << 30} {
		path := sparse(t, size)
		for _, sampling := range []string{Shuffle, Random} {
			best := time.Hour
			for range 5 {
				began := time.Now()
				s := open(t, Spec{Train: one(path), ValidFraction: 0.01, SeqLen: seqLen, Vocab: 1 << 16,
					Sampling: sampling})
				if _, err := s.Sampled(); err != nil {
					t.Fatal(err)
				}
				x, y := make([]int32, seqLen), make([]int32, seqLen)
				for g := range int64(batch) {
					if _, err := s.Train(g, x, y); err != nil {
						t.Fatal(err)
					}
				}
				best = min(best, time.Since(began))
			}
			t.Logf("%d MiB, %s: the first batch comes after %v", size>>20, sampling, best)
			if best > time.Second {
				t.Errorf("%d MiB, %s: the first batch comes after %v", size>>20, sampling, best)
			}
		}
	}
}

// The last tokens of a large file are read at their positions, which need 64 bits.
func TestLastTokensOfALargeFile(t *testing.T) {
	const seqLen, size = 1024, 6 << 30
	path := sparse(t, size)
	s := open(t, Spec{Train: one(path), ValidFraction: 1e-9, SeqLen: seqLen, Vocab: 1 << 16})
	x := get(t, s.Valid, s.ValidSamples()-1, seqLen)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tail := make([]byte, 2*(len(x.labels)))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		t.Fatal(err)
	}
	for i, label := range x.labels {
		if want := int32(tail[2*i]) | int32(tail[2*i+1])<<8; label != want {
			t.Fatalf("label %d of the last sample is %d, want %d", i, label, want)
		}
	}
}
