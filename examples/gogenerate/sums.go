package main

// sums are the samples: all additions of two numbers below 100. Every tenth is kept for validation.
type sums struct{}

// Tokens beside the digits, which stand for themselves.
const (
	plus, equals = 10, 11
	numbers      = 100
	every        = 10
)

// all is how many additions there are.
const all = numbers * numbers

// step leads from one sample to the next so that neighbours have little in common: it has no factor in common with all.
const step = 6007

// Train is sample g of any epoch. The same g is always the same addition, so that a run that was stopped goes on with
// what it would have read.
func (sums) Train(g int64, tokens, labels []int32) (int, error) {
	kept := g % (all - all/every)
	return add(kept+kept/(every-1)+1, tokens, labels), nil
}

func (sums) TrainSamples() int64 { return all - all/every }

func (sums) Valid(g int64, tokens, labels []int32) (int, error) {
	return add(g*every, tokens, labels), nil
}

func (sums) ValidSamples() int64 { return all / every }

// add writes the addition of number i: 27+58=58 and its labels, of which those of the sum 580 count.
func add(i int64, tokens, labels []int32) (unmasked int) {
	n := i * step % all
	a, b := n/numbers, n%numbers
	sum := a + b
	text := []int64{a / 10, a % 10, plus, b / 10, b % 10, equals, sum % 10, sum / 10 % 10, sum / 100}
	for t := range tokens {
		tokens[t] = int32(text[t])
		labels[t] = -1
		if text[t] == equals || t > 5 {
			labels[t] = int32(text[t+1])
		}
	}
	return len(tokens)
}
