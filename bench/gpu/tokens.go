package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/planc-dev/planc/runtime/data"
)

// writeTokens writes a file of n tokens below vocab in nanoGPT's format. They are always the same. Their frequencies
// are those of words (Zipf), and half of them are the most frequent successor of the previous token, so that there is
// something to learn.
func writeTokens(path string, n, vocab int) error {
	r := rand.New(rand.NewPCG(1, uint64(vocab)))
	var out []byte
	for last := 0; n > 0; n-- {
		next := int(math.Exp(r.Float64()*math.Log(float64(vocab)))) - 1
		if r.IntN(2) == 0 {
			next = (last*7919 + 13) % vocab
		}
		last = min(next, vocab-1)
		out = binary.LittleEndian.AppendUint16(out, uint16(last))
	}
	return os.WriteFile(path, out, 0o666)
}

// seed is the default seed of a job.
const seed = 1337

// writeBatches writes the sequences that a program trains on in so many steps, in its order, each with the token
// after its last one.
func writeBatches(path, tokens string, m *model, steps int) error {
	set, err := data.Open(data.Spec{Train: []data.Source{{Path: tokens, Weight: 1}}, Dir: filepath.Dir(tokens),
		SeqLen: m.Seq, Vocab: m.Vocab, Seed: seed})
	if err != nil {
		return err
	}
	defer set.Close()
	in, labels := make([]int32, m.Seq), make([]int32, m.Seq)
	var out []byte
	for g := range int64(steps * m.Batch) {
		counted, err := set.Train(g, in, labels)
		if err == nil && counted < m.Seq {
			err = fmt.Errorf("%s: only %d tokens of sample %d count", tokens, counted, g)
		}
		if err != nil {
			return err
		}
		for _, id := range append(in[:m.Seq:m.Seq], labels[m.Seq-1]) {
			out = binary.LittleEndian.AppendUint16(out, uint16(id))
		}
	}
	return os.WriteFile(path, out, 0o666)
}
