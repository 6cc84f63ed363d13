package data

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// indexFile returns an .idx file: the type of the tokens, and the lengths of the sequences, each of them a document.
func indexFile(code byte, width int, lengths ...int) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(indexMark), 1)
	b = append(b, code)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(lengths)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(lengths)+1))
	for _, n := range lengths {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	at := 0
	for _, n := range lengths {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		at += n * width
	}
	for i := range len(lengths) + 1 {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
	}
	return b
}

// tokens of those numbers of bytes.
func u(width int, tokens ...int) (b []byte) {
	for _, v := range tokens {
		b = append(b, binary.LittleEndian.AppendUint32(nil, uint32(v))[:width]...)
	}
	return b
}

// A data set has the samples that its tokens have in nanoGPT's format, in the same order.
func TestMegatronHasTheSamplesOfItsTokens(t *testing.T) {
	dir := t.TempDir()
	const seqLen, vocab = 8, 200
	want := open(t, Spec{Train: one(write(t, dir, "plain.bin", u16(count(vocab)...))), SeqLen: seqLen, Vocab: vocab,
		ValidFraction: 0.1, Seed: 3})
	for _, c := range []struct {
		code  byte
		width int
	}{{1, 1}, {3, 2}, {4, 4}, {8, 2}} {
		write(t, dir, "m.idx", indexFile(c.code, c.width, 3, 100, 97))
		s := open(t, Spec{Train: one(write(t, dir, "m.bin", u(c.width, count(vocab)...))), SeqLen: seqLen, Vocab: vocab,
			ValidFraction: 0.1, Seed: 3})
		if s.TrainSamples() != want.TrainSamples() || s.ValidSamples() != want.ValidSamples() {
			t.Fatalf("type %d: %v, not %v", c.code, s, want)
		}
		for g := range 2 * s.TrainSamples() {
			a, b := get(t, s.Train, g, seqLen), get(t, want.Train, g, seqLen)
			if !slices.Equal(a.tokens, b.tokens) || !slices.Equal(a.labels, b.labels) {
				t.Errorf("type %d: sample %d is %v, not %v", c.code, g, a.tokens, b.tokens)
			}
		}
	}
}

func TestWrongMegatronDataSets(t *testing.T) {
	dir := t.TempDir()
	good := indexFile(8, 2, 3, 4)
	patched := func(at int, value byte) []byte {
		b := slices.Clone(good)
		b[at] = value
		return b
	}
	tokens := u16(count(7)...)
	for _, c := range []struct {
		index, bin []byte
		message    string
	}{
		{good, tokens[:12], "is truncated: its index m.idx says 7 tokens, which take 14 bytes, but it has 12"},
		{good, append(slices.Clone(tokens), 0, 0), "is too long: its index m.idx says 7 tokens, which take 14 " +
			"bytes, but it " +
			"has 16"},
		{good[:len(good)-1], tokens, "has a truncated index: the header of m.idx says 2 sequences, which take " +
			"82 bytes, " +
			"but it has 81"},
		{append(slices.Clone(good), 0), tokens, "has a too long index: the header of m.idx says 2 sequences, " +
			"which take 82 " +
			"bytes, but it has 83"},
		{good[:20], tokens, "has a truncated index: m.idx has 20 bytes, but its header alone takes 34"},
		{patched(9, 2), tokens, "has the index m.idx of version 2; it must be version 1"},
		{patched(17, 7), tokens, "has tokens of type float32 (code 7 in m.idx); they must be uint8, int16, " +
			"uint16 or int32"},
		{patched(25, 1), tokens, "has the damaged index m.idx: it says 72057594037927938 sequences and 3 documents"},
		{patched(50, 4), tokens, "cannot be read as consecutive tokens: the index m.idx says that sequence 1 " +
			"begins at byte " +
			"4, but the one before it ends at 6"},
		{[]byte("TNTIDX"), tokens, "has the file m.idx next to it, which is not the index of a Megatron data " +
			"set; rename " +
			"one of them"},
		{indexFile(8, 2), nil, "is empty: its index m.idx has no tokens"},
	} {
		write(t, dir, "m.idx", c.index)
		_, err := Open(Spec{Train: one(write(t, dir, "m.bin", c.bin)), SeqLen: 4, Vocab: 10})
		wantInputError(t, err, dir, "data: DIR/m.bin "+c.message)
	}
}

// Files over 4 GiB need positions of 64 bits. The file is sparse.
func TestFilesOverFourGiB(t *testing.T) {
	dir := t.TempDir()
	const sequences, length, seqLen = 5, 1 << 28, 64 // 5 GiB of 32-bit tokens
	path := filepath.Join(dir, "m.bin")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 4 * sequences * length
	if err := f.Truncate(size); err != nil {
		t.Skipf("no room for a sparse file: %v", err)
	}
	if _, err := f.WriteAt(u(4, count(seqLen)...), size-4*seqLen); err != nil {
		t.Skipf("no room for a sparse file: %v", err)
	}
	write(t, dir, "m.idx", indexFile(4, 4, length, length, length, length, length))
	s := open(t, Spec{Train: one(path), Valid: one(path), SeqLen: seqLen, Vocab: 100})
	last := get(t, s.Valid, s.ValidSamples()-1, seqLen)
	if !slices.Equal(last.tokens, appendInt32(count(seqLen-1))) {
		t.Errorf("the last sample is %v", last.tokens)
	}
	if err := f.Truncate(size - 4); err != nil {
		t.Fatal(err)
	}
	_, err = Open(Spec{Train: one(path), SeqLen: seqLen, Vocab: 100})
	wantInputError(t, err, dir, "data: DIR/m.bin is truncated: its index m.idx says 1342177280 tokens, which take "+
		"5368709120 bytes, but it has 5368709116")
}

func appendInt32(numbers []int) (tokens []int32) {
	for _, n := range numbers {
		tokens = append(tokens, int32(n))
	}
	return tokens
}
