package data

import "fmt"

// Values of Spec.Weights.
const (
	Passes = "passes" // a weight is how often each sample of the source appears in an epoch
	Shares = "shares" // weights are the shares of the sources in the samples
)

// mix decides how many samples each source has in an epoch. Its multiplications are rounded explicitly, for the same
// samples on every platform.
func (s *Set) mix() {
	if len(s.sources) == 0 {
		return
	}
	weights, samples := 0.0, int64(0)
	for i := range s.sources {
		weights += s.sources[i].Weight
		samples += s.sources[i].samples
	}
	s.starts = []int64{0}
	for i := range s.sources {
		src := &s.sources[i]
		size := float64(src.Weight * float64(src.samples))
		if s.spec.Weights == Shares {
			size = float64(float64(src.Weight/weights) * float64(samples))
		}
		src.epoch = max(1, int64(size+0.5))
		if s.spec.Weights != Shares && src.Weight == 1 {
			src.epoch = src.samples
		}
		s.starts = append(s.starts, s.TrainSamples()+src.epoch)
	}
}

// Mixture describes the sources of a training set that has several: the share of each in the samples, and how often
// an epoch reads its samples.
func (s *Set) Mixture() (lines []string) {
	if len(s.sources) < 2 {
		return nil
	}
	for i := range s.sources {
		src := &s.sources[i]
		lines = append(lines, fmt.Sprintf("%.2f %% from %s: %d samples an epoch, %.3g times its %d",
			100*float64(src.epoch)/float64(s.TrainSamples()), src.Path, src.epoch,
			float64(src.epoch)/float64(src.samples), src.samples))
	}
	return lines
}

// SourceCount is how many training samples a source gave.
type SourceCount struct {
	Path    string
	Samples int64
}

// maxCounted is the maximum number of samples that Counts looks at one by one, which takes about a second.
const maxCounted = 1 << 23

// Counts returns the number of samples of each source among the first end training samples; nil if counting them takes
// too long. Whole epochs take no time, unless samples are drawn at random.
func (s *Set) Counts(end int64) []SourceCount {
	whole, n := int64(0), s.TrainSamples() // whole epochs
	if s.spec.Sampling != Random {
		whole = end / n
	}
	if end-whole*n > maxCounted {
		return nil
	}
	counts := make([]SourceCount, len(s.sources))
	for i := range counts {
		counts[i] = SourceCount{s.sources[i].Path, whole * s.sources[i].epoch}
	}
	for g := whole * n; g < end; g++ {
		i, _ := s.sourceOf(g)
		counts[i].Samples++
	}
	return counts
}
