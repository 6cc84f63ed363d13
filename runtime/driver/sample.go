package driver

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/tokenizer"
)

// sampleKey separates the random numbers of sampling from other uses of the seed.
const sampleKey = 0x73616d70 // "samp"

// sampleSetting is the setting of the prompt that is continued during and after training.
const sampleSetting = "train.eval.sample"

// checkSampling refuses a prompt if the program cannot continue a text.
func (r *run) checkSampling() error {
	const cannot = "%s: this model does not predict the next token, so it cannot continue a text; leave %s out"
	switch {
	case r.o.Generate != "" && !r.p.Samples():
		return exit.Errorf(exit.Input, cannot, generateFlag, "it")
	case r.s.Train.Eval.Sample != "" && !r.p.Samples():
		return exit.Errorf(exit.Input, cannot, sampleSetting, "the key")
	}
	return nil
}

// prompt returns a prompt for this program. from is what gave it.
func (r *run) prompt(text, from string) *feed.Prompt {
	return &feed.Prompt{Text: text, From: from, Tokenizer: r.s.Data.Tokenizer, Vocab: r.p.Model.Vocab}
}

// sampleTokens returns how many tokens are added to a prompt.
func (r *evaluator) sampleTokens() int {
	return cmp.Or(r.s.Train.Eval.SampleTokens, program.DefaultSampleTokens)
}

// showSample continues the prompt of the settings after the last step, if there is one, and reports the text.
func (r *evaluator) showSample() error {
	if r.s.Train.Eval.Sample == "" || r.p.Model.Vocab == 1 || r.member.isStopRequested() {
		return nil
	}
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	text, err := r.sample(r.s.Train.Eval.Sample)
	if err != nil {
		return err
	}
	r.report.Info(fmt.Sprintf("step %d  sample  %s", r.done.step, text), "sample", "step", r.done.step, "text", text)
	r.metrics.Event(r.done.step, "sample", text)
	return nil
}

// sample continues a prompt, token by token, and returns both. The ranks of the first replica compute the logits in
// lockstep. If replicas communicate in forward passes (ZeRO 3, experts), all ranks do. The random numbers depend on
// seed, step and position. The sample is shorter if the run is asked to stop.
func (r *evaluator) sample(prompt string) (string, error) {
	use, err := data.NewTokenizer(r.s.Data.Tokenizer)
	if err != nil {
		return "", err
	}
	tokens, err := use.Encode(nil, []byte(prompt), true)
	if err != nil {
		return "", err
	}
	r.noteDropped(use)
	vocab := min(use.Vocab(), r.p.Model.Vocab)
	key := rng.Key(r.s.Train.Seed, sampleKey, uint64(r.done.step))
	temperature := cmp.Or(r.s.Train.Eval.Temperature, program.DefaultTemperature)
	for i := range r.sampleTokens() {
		if r.member.isStopRequested() {
			break
		}
		window := tokens[max(0, len(tokens)-r.p.Batch.SeqLen):]
		err := r.crew.do(func(k *rank.Rank) {
			if k.Replica() == 0 || r.p.ReplicasMeet() {
				k.ComputeLogits(window, len(window)-1)
			}
		})
		if err != nil {
			return "", err
		}
		logits, err := r.nextLogits(vocab)
		if err != nil {
			return "", err
		}
		keepLikeliest(logits, r.s.Train.Eval.TopK)
		next := pick(logits, temperature, rng.Uniform(key, uint64(i)))
		tokens = append(tokens, int32(next))
	}
	return tokenizer.Decode(use, tokens), nil
}

// noteDropped warns once if characters of the prompt were left out.
func (r *evaluator) noteDropped(use tokenizer.Tokenizer) {
	subword, is := use.(*tokenizer.Subword)
	if !is || r.hasNotedDropped {
		return
	}
	if c, isDropped := subword.Dropped(); isDropped {
		r.hasNotedDropped = true
		r.report.Warn(fmt.Sprintf("the tokenizer has no token for some characters of the prompt, such as %q; they are "+
			"left out", c))
	}
}

// nextLogits returns the logits that the ranks have just computed.
func (r *evaluator) nextLogits(vocab int) (logits []float64, err error) {
	head := r.crew.head()
	if r.crew.isLocal(head) {
		logits = head.Logits(vocab)
	}
	if r.team.Peers == nil {
		return logits, nil
	}
	all, err := r.team.Peers.Exchange(tensors.Bytes(logits))
	if err == nil {
		err = r.member.exchangeReports()
	}
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		if len(b) > 0 {
			logits = make([]float64, len(b)/8)
			copy(tensors.Bytes(logits), b)
		}
	}
	return logits, nil
}

// keepLikeliest sets all logits to -Inf except the k largest and those that equal the smallest of them; 0 keeps all.
func keepLikeliest(logits []float64, k int) {
	if k == 0 || k >= len(logits) {
		return
	}
	sorted := slices.Sorted(slices.Values(logits))
	least := sorted[len(sorted)-k]
	for i, x := range logits {
		if x < least {
			logits[i] = math.Inf(-1)
		}
	}
}

// pick samples a token from softmax(logits/temperature) with a uniform random number u from [0, 1).
func pick(logits []float64, temperature, u float64) int {
	top := math.Inf(-1)
	for _, x := range logits {
		top = max(top, x)
	}
	sum := 0.0
	for i, x := range logits {
		logits[i] = math.Exp((x - top) / temperature)
		sum += logits[i]
	}
	rest := u * sum
	for i, w := range logits {
		rest -= w
		if rest < 0 {
			return i
		}
	}
	return len(logits) - 1
}
