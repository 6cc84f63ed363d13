package driver

import (
	"math"

	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/tensors"
)

// Parameters of the text that is sampled at the end of a run.
const (
	sampleTokens = 160
	temperature  = 0.8
	sampleKey    = 0x73616d70 // "samp": separates these random numbers from other uses of the seed
)

// sample continues a prompt, byte by byte, and returns both. The ranks of the first replica compute the logits in
// lockstep. If replicas communicate in forward passes (ZeRO 3, experts), all ranks do. The random numbers depend on
// seed, step and position. The sample is shorter if the run is asked to stop.
func (r *evaluator) sample(prompt string) (string, error) {
	tokenizer, err := data.NewTokenizer(r.s.Data.Tokenizer)
	if err != nil {
		return "", err
	}
	tokens := tokenizer.Encode(prompt)
	key := rng.Key(r.s.Train.Seed, sampleKey, uint64(r.done.step))
	for i := range sampleTokens {
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
		logits, err := r.nextLogits(tokenizer.Vocab())
		if err != nil {
			return "", err
		}
		next := pick(logits, temperature, rng.Uniform(key, uint64(i)))
		tokens = append(tokens, int32(next))
	}
	return tokenizer.Decode(tokens), nil
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
