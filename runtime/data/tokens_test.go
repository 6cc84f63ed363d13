package data

import (
	"math"
	"slices"
	"testing"
)

// Every width, every length and every place of the token that is too large.
func TestDecode(t *testing.T) {
	for _, width := range []int{1, 2, 4} {
		for n := range 20 {
			tokens := count(n)
			got := make([]int32, n)
			b := ints(width, append(slices.Clone(tokens), 7)...) // what follows is not read
			if !decode(got, b, width, 19) {
				t.Errorf("%d tokens of %d bytes: not within 19", n, width)
			}
			for i, v := range got {
				if int(v) != tokens[i] {
					t.Errorf("%d tokens of %d bytes: got %v", n, width, got)
					break
				}
			}
			for i := range n {
				for _, large := range []int{20, 1<<(8*width) - 1, 1 << (8*width - 1)} {
					other := slices.Clone(tokens)
					other[i] = large
					if decode(got, ints(width, other...), width, 19) {
						t.Errorf("%d tokens of %d bytes: %d at %d is within 19", n, width, large, i)
					}
				}
			}
		}
	}
	if got := make([]int32, 1); !decode(got, ints(4, math.MaxInt32), 4, math.MaxInt32) {
		t.Error("the largest token is not within the largest limit")
	}
}

// A sample longer than the buffer is read in pieces, and is the same: labels go on over their borders.
func TestLongSamples(t *testing.T) {
	dir := t.TempDir()
	content := make([]byte, 2*pieceBytes+2*pieceBytes/3)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	path := write(t, dir, "t.txt", content)
	for _, seqLen := range []int{pieceBytes - 2, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes,
		len(content) - 1} {
		s := open(t, Spec{Train: one(path), Valid: one(path), SeqLen: seqLen, Vocab: 256})
		x := get(t, s.Valid, 0, seqLen)
		for i := range x.tokens {
			if x.tokens[i] != int32(content[i]) || x.labels[i] != int32(content[i+1]) {
				t.Fatalf("seq_len %d: at %d there are token %d and label %d, want %d and %d", seqLen, i, x.tokens[i],
					x.labels[i], content[i], content[i+1])
			}
		}
	}
	words := make([]byte, 4*pieceBytes)
	words[2*(pieceBytes+5)] = 200
	s := open(t, Spec{Train: one(write(t, dir, "t.bin", words)), SeqLen: pieceBytes + 100, Vocab: 100})
	_, err := s.Train(0, make([]int32, pieceBytes+100), make([]int32, pieceBytes+100))
	_, other := s.Train(1, make([]int32, pieceBytes+100), make([]int32, pieceBytes+100))
	if err == nil {
		err = other
	}
	wantInputError(t, err, dir, "data: DIR/t.bin: token 1048581 is 200, but the model's vocabulary is 100 (0 to 99); "+
		"was the file made by another tokenizer?")
}
