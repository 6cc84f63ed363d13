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

// writeTokens writes n random token ids in [0, vocab), as uint16 (nanoGPT's format). The output is deterministic. Half
// of the tokens follow a Zipf distribution. The other half are a fixed function of the previous token, so that a model
// can learn them. vocab is at most 65,536.
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

// seed is the default of train.seed in a job.
const seed = 1337

// writeBatches writes the training sequences of the first steps, in training order. Each has SeqLen+1 tokens: the
// inputs and the last label.
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
			err = fmt.Errorf("%s: sample %d has only %d tokens that count, want %d", tokens, g, counted, m.Seq)
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
