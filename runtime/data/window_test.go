package data

import (
	"math"
	"testing"
)

// Random draws each window of the training part equally often, over files and up to the held-out part. A sample is
// complete, and depends only on seed and number.
func TestRandomWindowsAreUniform(t *testing.T) {
	dir := t.TempDir()
	const seqLen, draws = 4, 40000
	spec := Spec{Train: one(write(t, dir, "a.bin", u16(count(41)...))), SeqLen: seqLen, Vocab: 99, Seed: 5,
		Sampling: Random, ValidFraction: 0.2}
	s, second := open(t, spec), open(t, spec)
	spec.Seed = 6
	other := open(t, spec)
	starts, same := map[int32]int{}, 0
	for g := range int64(draws) {
		x := get(t, s.Train, g, seqLen)
		if len(x.tokens) != seqLen {
			t.Fatalf("sample %d has %d tokens", g, len(x.tokens))
		}
		for i := range x.tokens {
			if x.tokens[i] != x.tokens[0]+int32(i) || x.labels[i] != x.tokens[i]+1 {
				t.Fatalf("sample %d: tokens %v, labels %v", g, x.tokens, x.labels)
			}
		}
		starts[x.tokens[0]]++
		if y := get(t, second.Train, g, seqLen); y.tokens[0] != x.tokens[0] {
			t.Fatalf("sample %d begins at %d and at %d", g, x.tokens[0], y.tokens[0])
		}
		if y := get(t, other.Train, g, seqLen); y.tokens[0] == x.tokens[0] {
			same++
		}
	}
	// 8 of the 10 windows of an epoch are trained on: 32 tokens and a label. A window takes 4 tokens and a label.
	const windows = 29
	for at := range int32(windows) {
		if c, want := starts[at], draws/windows; math.Abs(float64(c-want)) > 5*math.Sqrt(float64(want)) {
			t.Errorf("%d samples begin at token %d, want about %d", c, at, want)
		}
		delete(starts, at)
	}
	if len(starts) > 0 {
		t.Errorf("samples begin at the tokens %v, of which the labels are held out", starts)
	}
	if same > draws/windows*2 {
		t.Errorf("%d of %d samples are the same with another seed", same, draws)
	}
}

// A source of several files has the windows of all of them, and weights apply.
func TestRandomWindowsOfSources(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a1.bin", u16(count(25)...))
	write(t, dir, "a2.bin", u16(count(45)[20:]...))
	b := write(t, dir, "b.txt", make([]byte, 401))
	s := open(t, Spec{Train: []Source{{dir + "/a?.bin", 3}, {b, 1}}, SeqLen: 4, Vocab: 256, Sampling: Random,
		Weights: Shares})
	const draws = 20000
	seen, fromA := map[int32]int{}, 0
	for g := range int64(draws) {
		if x := get(t, s.Train, g, 4); x.labels[0] != 0 {
			fromA++
			seen[x.tokens[0]]++
		}
	}
	if math.Abs(float64(fromA)/draws-0.75) > 0.02 {
		t.Errorf("%d of %d samples are of the source with the share 3 of 4", fromA, draws)
	}
	if len(seen) != 41 {
		t.Errorf("samples begin at %d tokens of two files, want 0 to 20 and 20 to 40", len(seen))
	}
}
