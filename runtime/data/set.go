package data

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/planc-dev/planc/runtime/rng"
)

// Source is a path, as Resolve takes it, and the weight of its samples.
type Source struct {
	Path   string
	Weight float64 // positive; see Spec.Weights
}

// Spec describes what a Set reads.
type Spec struct {
	Train         []Source
	Valid         []Source // weights are ignored
	ValidFraction float64  // in [0, 1): held out of Train's files if Valid is empty
	Root          string   // prefix of relative paths
	Dir           string   // folder of the job file
	Tokenizer     string   // tokenizer of files that are not .bin; "" is bytes
	SeqLen        int      // tokens per sample
	Vocab         int      // exclusive upper bound of tokens
	Seed          uint64   // seed of the order
	Sampling      string   // [Shuffle] or [Random]; "" is Shuffle
	Weights       string   // [Passes] or [Shares]; "" is Passes
	Documents     string   // [Packed] or [Separate]; "" is Packed
	DocumentMask  bool     // attention and loss do not cross the borders of documents in a window

	// Notice is called with messages about files that change while they are in use, although what is read has not
	// changed. Any goroutine that reads may call it. It may be nil.
	Notice func(text string)
}

// Set is open data. Any number of goroutines may call its methods; the results do not depend on the order of calls.
type Set struct {
	spec    Spec
	order   atomic.Pointer[epochOrder] // the order that was used last
	files   []*tokenFile
	opened  []int // number of files of each source in spec.Train
	sources []source
	starts  []int64 // sources[i] has the samples [starts[i], starts[i+1]) of an epoch, before permutation
	valid   []section
	nvalid  int64
}

// source is the training part of one Source.
type source struct {
	Source
	sections []section
	samples  int64 // samples in sections
	epoch    int64 // samples per epoch, as the weights say
	windows  int64 // tokens at which a sample of Random can begin
}

// section is the samples [first, first+count) of a file. They have the numbers from start on within the source.
type section struct {
	file                *tokenFile
	first, count, start int64
}

// Open resolves, opens and checks all files of spec. Errors about the user's files and settings are InputErrors.
//
// Weights: with Passes, a source with n samples and weight w has round(w*n) samples (at least one) per epoch. With
// Shares, an epoch has as many samples as all sources together, of which each source has the share of its weight in the
// sum of weights. They cycle through its samples, and each epoch continues where the last one ended. Half of a source's
// samples per epoch thus are one half in one epoch and the other half in the next; two and a half times its samples are
// all samples twice, and alternating halves once more.
//
// Validation: ValidFraction holds out the last samples of each file, so many that they are that fraction of all files
// so far, and at least one sample in total. They are never used for training.
func Open(spec Spec) (*Set, error) {
	s := &Set{spec: spec}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) open() error {
	if err := s.spec.check(); err != nil {
		return err
	}
	var held holdout // its multiplications are rounded explicitly, for the same samples on every platform
	if len(s.spec.Valid) == 0 {
		held.fraction = s.spec.ValidFraction
	}
	for i, src := range s.spec.Train {
		files, err := s.openSource(src)
		if err != nil {
			return err
		}
		s.opened = append(s.opened, len(files))
		held.lastSource = i == len(s.spec.Train)-1
		s.addSource(src, files, &held)
	}
	s.mix()
	for _, src := range s.spec.Valid {
		files, err := s.openSource(src)
		if err != nil {
			return err
		}
		for _, f := range files {
			s.addValid(f, 0, f.samples(int64(s.spec.SeqLen)))
		}
	}
	if s.TrainSamples() == 0 {
		samples, all := "1 sample", "it"
		if s.nvalid != 1 {
			samples, all = fmt.Sprintf("%d samples", s.nvalid), "all of them"
		}
		return inputf("nothing is left to train on: the files have %s of %d tokens, and data.valid %g holds %s out; "+
			"use more data, a shorter train.seq_len, or data.valid: 0", samples, s.spec.SeqLen,
			s.spec.ValidFraction, all)
	}
	return nil
}

func (spec Spec) check() error {
	switch {
	case spec.SeqLen <= 0 || spec.Vocab <= 0:
		panic(fmt.Sprintf("data: SeqLen %d and Vocab %d must be positive", spec.SeqLen, spec.Vocab))
	case len(spec.Train) == 0:
		return inputf("data.train names no files")
	case !(spec.ValidFraction >= 0 && spec.ValidFraction < 1):
		return inputf("data.valid is %g; it must be at least 0 and below 1", spec.ValidFraction)
	case spec.Documents == Separate && spec.Sampling == Random:
		return inputf("data.sampling is random, whose windows begin anywhere, and data.documents is separate, whose " +
			"windows begin with their document: use data.sampling shuffle, or data.documents packed")
	}
	for _, src := range spec.Train {
		if !(src.Weight > 0 && src.Weight <= 1e6) {
			return inputf("the weight of %s is %g; it must be above 0 (1 reads each sample once per epoch)",
				src.Path, src.Weight)
		}
	}
	return nil
}

// openSource opens the files of a source and checks that each has at least one full sample.
func (s *Set) openSource(src Source) ([]*tokenFile, error) {
	paths, err := Resolve(src.Path, s.spec.Root, s.spec.Dir)
	if err != nil {
		return nil, err
	}
	first := len(s.files)
	for _, path := range paths {
		f, err := openTokens(path, s.spec.Tokenizer, s.spec.Vocab)
		if err != nil {
			return nil, err
		}
		f.watch.notice = s.spec.Notice
		s.files = append(s.files, f)
		if s.spec.Documents == Separate || s.spec.DocumentMask {
			if err := f.openDocuments(&s.spec); err != nil {
				return nil, err
			}
		}
		if need := int64(s.spec.SeqLen) + 1; s.spec.Documents != Separate && f.Tokens < need {
			return nil, about(path, inputf("%s is too short: it has %d tokens, but one sample needs %d "+
				"(train.seq_len %d plus the last label)",
				path, f.Tokens, need, s.spec.SeqLen))
		}
	}
	return s.files[first:], nil
}

// holdout decides how many of a file's samples are used for validation.
type holdout struct {
	fraction   float64
	seen, held int64 // samples so far
	lastSource bool
}

func (h *holdout) take(samples int64, lastFile bool) int64 {
	if h.fraction == 0 {
		return 0
	}
	h.seen += samples
	n := int64(float64(h.fraction*float64(h.seen))+0.5) - h.held
	n = max(0, min(n, samples))
	if lastFile && h.lastSource && h.held+n == 0 {
		n = 1
	}
	h.held += n
	return n
}

// addSource adds the samples of a source's files that are not held out.
func (s *Set) addSource(from Source, files []*tokenFile, held *holdout) {
	src := source{Source: from}
	for i, f := range files {
		n := f.samples(int64(s.spec.SeqLen))
		out := held.take(n, i == len(files)-1)
		if out < n {
			sec := section{f, 0, n - out, src.samples}
			src.sections = append(src.sections, sec)
			src.windows += sec.windows(int64(s.spec.SeqLen))
		}
		src.samples += n - out
		if out > 0 {
			s.addValid(f, n-out, out)
		}
	}
	if src.samples > 0 {
		s.sources = append(s.sources, src)
	}
}

func (s *Set) addValid(f *tokenFile, first, count int64) {
	s.valid = append(s.valid, section{f, first, count, s.nvalid})
	s.nvalid += count
}

// TrainSamples returns the number of training samples in an epoch.
func (s *Set) TrainSamples() int64 {
	if len(s.starts) == 0 {
		return 0
	}
	return s.starts[len(s.starts)-1]
}

// ValidSamples returns the number of validation samples.
func (s *Set) ValidSamples() int64 { return s.nvalid }

// Train fills tokens and labels, both SeqLen long, with sample g of training, counted from 0 through all
// epochs. Positions from unmasked on are past the end of the file: token and label are 0 there, and the
// caller must mask them. A token outside the vocabulary is an InputError.
func (s *Set) Train(g int64, tokens, labels []int32) (unmasked int, err error) {
	return s.trainWindow(g).read(&s.spec, tokens, labels)
}

// trainWindow returns the window of sample g of training.
func (s *Set) trainWindow(g int64) window {
	i, place := s.sourceOf(g)
	src, n := &s.sources[i], int64(s.spec.SeqLen)
	if s.spec.Sampling == Random {
		return src.randomWindow(rng.Bits(randomKey(s.spec.Seed), 2*uint64(g)+1), n)
	}
	m := uint64(src.samples)
	begin := mulMod(uint64(g/s.TrainSamples()), uint64(src.epoch), m) // end of the last epoch
	k := (begin + uint64(place)%m) % m
	return windowOf(src.sections, int64(k), n)
}

// sourceOf returns the source of training sample g, and the sample's number among those of the source in its epoch.
func (s *Set) sourceOf(g int64) (i int, place int64) {
	n := s.TrainSamples()
	if s.spec.Sampling == Random {
		place = below(rng.Bits(randomKey(s.spec.Seed), 2*uint64(g)), n)
	} else {
		place = int64(s.orderOf(uint64(g / n)).at(uint64(g % n)))
	}
	i = sort.Search(len(s.sources), func(i int) bool { return place < s.starts[i+1] })
	return i, place - s.starts[i]
}

// epochOrder is the order of an epoch's samples.
type epochOrder struct {
	epoch uint64
	permutation
}

// orderOf returns the order of an epoch. It is computed once while samples of that epoch are read.
func (s *Set) orderOf(epoch uint64) *epochOrder {
	if last := s.order.Load(); last != nil && last.epoch == epoch {
		return last
	}
	order := &epochOrder{epoch, newPermutation(uint64(s.TrainSamples()), rng.Key(s.spec.Seed, orderKey, epoch))}
	s.order.Store(order)
	return order
}

// orderKey separates the random numbers of the data's order from other uses of the seed.
const orderKey = 0x64617461 // "data"

// Valid fills tokens and labels, as Train does, with sample g of validation. The order is that of the
// files; past the last sample it begins again. It panics where ValidSamples is 0.
func (s *Set) Valid(g int64, tokens, labels []int32) (unmasked int, err error) {
	return s.validWindow(g).read(&s.spec, tokens, labels)
}

// validWindow returns the window of sample g of validation.
func (s *Set) validWindow(g int64) window { return windowOf(s.valid, g%s.nvalid, int64(s.spec.SeqLen)) }

// Bytes reports whether tokens are bytes: all files are text, or the vocabulary has 256 tokens.
func (s *Set) Bytes() bool {
	return s.spec.Vocab == byteVocab || !slices.ContainsFunc(s.files, func(f *tokenFile) bool {
		return f.Width > 1
	})
}

// String returns one line for logs: "2 files, 1.2M tokens: 1141 samples an epoch, 60 held out".
func (s *Set) String() string {
	var tokens int64
	for _, f := range s.files {
		tokens += f.Tokens
	}
	files := "1 file"
	if len(s.files) != 1 {
		files = fmt.Sprintf("%d files", len(s.files))
	}
	valid := fmt.Sprintf("%d to validate", s.nvalid)
	if s.nvalid == 0 {
		valid = "no validation"
	}
	switch {
	case s.spec.Sampling == Random:
		valid = "drawn at random, " + valid
	case s.spec.Documents == Separate:
		valid = fmt.Sprintf("of one document each (%.0f %% padding), ", 100*s.padding()) + valid
	case s.spec.DocumentMask:
		valid = "of packed documents that attention does not mix, " + valid
	}
	return fmt.Sprintf("%s, %d tokens: %d samples of %d an epoch, %s", files, tokens, s.TrainSamples(),
		s.spec.SeqLen, valid)
}

// padding returns the part of the samples of separate documents that is padding.
func (s *Set) padding() float64 {
	labels, positions := int64(0), int64(0)
	for _, f := range s.files {
		labels += f.documents.labels
		positions += f.documents.samples * int64(s.spec.SeqLen)
	}
	return 1 - float64(labels)/float64(positions)
}

// ID identifies all that decides the tokens of sample g: lengths and formats of the files in order, weights, held-out
// part, sample length and seed. A checkpoint's sample count is valid only for a Set with the same ID.
func (s *Set) ID() string {
	var b strings.Builder
	fmt.Fprintf(&b, "v1 seq %d valid %g\n", s.spec.SeqLen, s.spec.ValidFraction)
	for _, src := range s.sources {
		fmt.Fprintf(&b, "source %d of %d\n", src.epoch, src.samples)
		for _, sec := range src.sections {
			fmt.Fprintf(&b, "%d %d %d %d\n", sec.file.Width, sec.file.Tokens, sec.first, sec.count)
			if d := cmp.Or(sec.file.documents, sec.file.borders); d != nil {
				fmt.Fprintf(&b, "documents %d\n", d.hash)
			}
		}
	}
	if s.spec.Sampling == Random {
		b.WriteString("random\n")
	}
	return fmt.Sprintf("%016x", rng.KeyString(s.spec.Seed, b.String()))
}

// Files describes the data for people to compare: the tokens of each source, its weight, and what is held out. It does
// not include the length and order of samples.
func (s *Set) Files() string {
	var words []string
	at := 0
	for i, n := range s.opened {
		tokens := int64(0)
		for _, f := range s.files[at : at+n] {
			tokens += f.Tokens
		}
		at += n
		word := fmt.Sprintf("%d tokens in %d files", tokens, n)
		if n == 1 {
			word = fmt.Sprintf("%d tokens in 1 file", tokens)
		}
		if w := s.spec.Train[i].Weight; w != 1 {
			word += fmt.Sprintf(" of weight %g", w)
		}
		words = append(words, word)
	}
	text := strings.Join(words, " and ")
	if s.spec.ValidFraction > 0 && len(s.spec.Valid) == 0 {
		text += fmt.Sprintf(", data.valid %g", s.spec.ValidFraction)
	}
	if s.spec.Weights == Shares {
		text += ", data.weights shares"
	}
	if s.spec.Sampling == Random {
		text += ", data.sampling random"
	}
	if s.spec.Documents == Separate {
		text += ", data.documents separate"
	}
	if s.spec.DocumentMask {
		text += ", data.document_mask"
	}
	return text
}

// Name returns the files' name for people: the path of a single file, or the first path and the number of files.
func (s *Set) Name() string {
	if len(s.files) == 1 {
		return s.files[0].path
	}
	return fmt.Sprintf("one of %d files (%s, ...)", len(s.files), s.files[0].path)
}

// Close closes the files. No other method may be called after it.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.file.Close())
	}
	s.files = nil
	return errors.Join(errs...)
}
