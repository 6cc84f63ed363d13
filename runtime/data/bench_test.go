package data

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// memory is what a mapping of the file into memory would be.
type memory []byte

// demand is the largest published rate of GPT-2 124M, in tokens per second: llm.c on 8 H100, 140 ms for 524,288 tokens
// (modded-nanogpt, records/track_1_short/2024-10-13_llmc). One process reads for all ranks of a machine.
const demand = 3.745e6

// BenchmarkRead reads samples of 1,024 tokens of 16 bits from a file of 64 MiB in the page cache. "shuffle" and
// "random" are what training does; "memory" copies and decodes the same samples from memory, which no way of reading a
// file can beat; "memcpy" copies their bytes only. The metric "demands" is the rate over that of the fastest training.
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
	path := write(b, b.TempDir(), "t.bin", content)
	x, y := make([]int32, seqLen), make([]int32, seqLen)
	run := func(name string, read func(g int64) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(2 * seqLen)
			for g := range b.N {
				if err := read(int64(g)); err != nil {
					b.Fatal(err)
				}
			}
			rate := seqLen * float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate/1e6, "Mtokens/s")
			b.ReportMetric(rate/demand, "demands")
		})
	}
	samples := int64(0)
	for _, sampling := range []string{Shuffle, Random} {
		s := open(b, Spec{Train: one(path), SeqLen: seqLen, Vocab: 1 << 15, Sampling: sampling})
		samples = s.TrainSamples() - 1
		run(sampling, func(g int64) error {
			_, err := s.Train(g, x, y)
			return err
		})
	}
	buf := make([]byte, 2*(seqLen+1))
	run("memory", func(g int64) error {
		copy(buf, content[g*7919%samples*2*seqLen:])
		decode(x, buf, 2, 1<<15-1)
		copy(y[:seqLen-1], x[1:])
		decode(y[seqLen-1:], buf[2*seqLen:], 2, 1<<15-1)
		return nil
	})
	run("memcpy", func(g int64) error {
		copy(buf, content[g*7919%samples*2*seqLen:])
		return nil
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
