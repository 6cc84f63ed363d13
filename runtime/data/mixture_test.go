package data

import (
	"slices"
	"testing"
)

// Shares are those of the samples, whatever the sizes of the sources. Each source is read evenly.
func TestShares(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, dir, "a.bin", u16(count(41)...)), write(t, dir, "b.txt", make([]byte, 401))
	s := open(t, Spec{Train: []Source{{a, 3}, {b, 1}}, SeqLen: 4, Vocab: 256, Weights: Shares})
	n := s.TrainSamples()
	if n != 83+28 {
		t.Fatalf("an epoch has %d samples, want 83 and 28", n)
	}
	const epochs = 10
	seen, fromA := map[int32]int{}, 0
	for g := range epochs * n {
		if x := get(t, s.Train, g, 4); x.labels[0] != 0 {
			fromA++
			seen[x.tokens[0]]++
		}
	}
	if fromA != 83*epochs {
		t.Errorf("%d samples of %d epochs are of the source with the share 3 of 4, want %d", fromA, epochs, 83*epochs)
	}
	for at := int32(0); at < 40; at += 4 {
		if seen[at] != 83 {
			t.Errorf("the sample at token %d appears %d times in ten epochs, want 83", at, seen[at])
		}
	}
	want := []string{"74.77 % from " + a + ": 83 samples an epoch, 8.3 times its 10",
		"25.23 % from " + b + ": 28 samples an epoch, 0.28 times its 100"}
	if got := s.Mixture(); !slices.Equal(got, want) {
		t.Errorf("the mixture is %q, want %q", got, want)
	}
}

// The counts of a number of samples are those of the samples that are read.
func TestCounts(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, dir, "a.bin", u16(count(41)...)), write(t, dir, "b.txt", make([]byte, 101))
	for _, sampling := range []string{Shuffle, Random} {
		s := open(t, Spec{Train: []Source{{a, 2.5}, {b, 0.5}}, SeqLen: 4, Vocab: 256, Sampling: sampling})
		n, read := s.TrainSamples(), []int64{0, 0}
		for g := range 3*n + 1 {
			counts := s.Counts(g)
			if counts[0].Path != a || counts[0].Samples != read[0] || counts[1].Samples != read[1] {
				t.Fatalf("%s: the counts of %d samples are %v, want %v", sampling, g, counts, read)
			}
			if x := get(t, s.Train, g, 4); x.labels[0] != 0 {
				read[0]++
			} else {
				read[1]++
			}
		}
		if c := s.Counts(maxCounted + n); c != nil && sampling == Random {
			t.Errorf("%d samples are counted", maxCounted+n)
		}
	}
}
