package data

import (
	"math/bits"

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

// randomWindow is trainWindow for sampling Random.
func (s *Set) randomWindow(g int64) (file *tokenFile, at, count int64) {
	i, _ := s.sourceOf(g)
	src := &s.sources[i]
	n := int64(s.spec.SeqLen)
	k := below(rng.Bits(randomKey(s.spec.Seed), 2*uint64(g)+1), src.windows)
	for i := range src.sections {
		sec := &src.sections[i]
		windows := sec.windows(n)
		if k < windows {
			return sec.file, sec.first*n + k, n
		}
		k -= windows
	}
	panic("data: a source has fewer windows than its sections")
}
