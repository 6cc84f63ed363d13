package data

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/planc-dev/planc/runtime/rng"
)

// Values of Spec.Sampling.
const (
	// Shuffle visits each sample of an epoch once, in random order.
	Shuffle = "shuffle"
	// Random draws samples with replacement. Each is a window of SeqLen tokens that begins at a random token of a file,
	// as in nanoGPT. A source is drawn in proportion to its samples in an epoch.
	Random = "random"
)

// randomKind separates the random numbers of Random from other uses of the seed.
const randomKind = 0x77696e64 // "wind"

func randomKey(seed uint64) uint64 { return rng.Key(seed, randomKind) }

// below returns a number in [0, n) from 64 random bits. The numbers are equally likely but for 1 part in 2^64/n.
func below(random uint64, n int64) int64 {
	hi, _ := bits.Mul64(random, uint64(n))
	return int64(hi)
}

// windows returns the number of tokens of a section at which n tokens and the last label can begin. The section is of
// samples of n tokens.
func (sec *section) windows(n int64) int64 {
	end := min(sec.file.Tokens, (sec.first+sec.count)*n+1)
	return end - sec.first*n - n
}

// window is the tokens of a sample: count tokens with labels, the first of which is token number at of a file.
type window struct {
	file      *tokenFile
	at, count int64
}

// windowOf returns the window of sample k of sections, which are of samples of n tokens.
func windowOf(sections []section, k, n int64) window {
	i := sort.Search(len(sections), func(i int) bool { return k < sections[i].start+sections[i].count })
	sec := &sections[i]
	at, count := sec.file.window(sec.first+k-sec.start, n)
	return window{sec.file, at, count}
}

// read fills tokens and labels, both of the length of samples, and returns the number of those that the window has.
func (w window) read(spec *Spec, tokens, labels []int32) (unmasked int, err error) {
	if n := spec.SeqLen; len(tokens) != n || len(labels) != n {
		panic(fmt.Sprintf("data: buffers of %d tokens and %d labels for samples of %d", len(tokens), len(labels), n))
	}
	n := int(w.count)
	if err := w.file.read(w.at, tokens[:n], &labels[n-1], spec.Vocab); err != nil {
		return 0, err
	}
	copy(labels[:n-1], tokens[1:n])
	if w.file.borders != nil {
		w.file.borders.maskLabels(w.at, labels[:n])
	}
	clear(tokens[n:])
	clear(labels[n:])
	return n, nil
}

// numberDocuments fills numbers, one for each position of the sample, with the numbers of the positions' documents.
// Padding is a document of its own.
func (w window) numberDocuments(numbers []int32) {
	n := min(int64(len(numbers)), w.count)
	last := int32(0)
	if w.file.borders != nil {
		w.file.borders.number(w.at, numbers[:n])
		last = numbers[n-1]
	} else {
		clear(numbers[:n])
	}
	for k := n; k < int64(len(numbers)); k++ {
		numbers[k] = last + 1
	}
}

// randomWindow returns the window of n tokens that 64 random bits choose.
func (src *source) randomWindow(random uint64, n int64) window {
	k := below(random, src.windows)
	for i := range src.sections {
		sec := &src.sections[i]
		windows := sec.windows(n)
		if k < windows {
			return window{sec.file, sec.first*n + k, n}
		}
		k -= windows
	}
	panic("data: a source has fewer windows than its sections")
}
