package data

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// memory is what a mapping of the file into memory would be.
type memory []byte

// BenchmarkRead reads samples of 1,024 tokens of 16 bits in training's order from a file of 64 MiB in the page cache.
// "file" is what training does; "memory" copies and decodes the same samples from memory, which no way of reading a
// file can beat.
func BenchmarkRead(b *testing.B) {
	const seqLen = 1024
	r := rand.New(rand.NewPCG(1, 2))
	content := make(memory, 64<<20)
	for i := range content {
		content[i] = byte(r.Uint32())
		if i%2 == 1 {
			content[i] &= 0x7f
		}
	}
	s := open(b, Spec{Train: one(write(b, b.TempDir(), "t.bin", content)), SeqLen: seqLen, Vocab: 1 << 15})
	x, y := make([]int32, seqLen), make([]int32, seqLen)
	b.Run("file", func(b *testing.B) {
		b.SetBytes(2 * seqLen)
		for g := range b.N {
			if _, err := s.Train(int64(g), x, y); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("memory", func(b *testing.B) {
		b.SetBytes(2 * seqLen)
		buf := make([]byte, 2*(seqLen+1))
		for g := range b.N {
			at := int64(g*7919) % (s.TrainSamples() - 1) * 2 * seqLen
			copy(buf, content[at:])
			decode(x, buf, 2, 1<<15-1)
			copy(y[:seqLen-1], x[1:])
			decode(y[seqLen-1:], buf[2*seqLen:], 2, 1<<15-1)
		}
	})
}

// BenchmarkOpen opens many files, none of which is read.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		write(b, dir, fmt.Sprintf("%03d.bin", i), u16(count(30000)...))
	}
	for range b.N {
		s, err := Open(Spec{Train: one("*.bin"), Dir: dir, SeqLen: 1024, Vocab: 1 << 15})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
