package feed

import (
	"errors"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// openData opens the job's files.
func openData(p *program.Program, s *program.Settings, notice func(string)) (*data.Set, error) {
	spec := data.Spec{
		Notice:        notice,
		ValidFraction: s.Data.ValidFraction, Root: s.Data.Root, Dir: s.Dir, Tokenizer: s.Data.Tokenizer,
		SeqLen: p.Batch.SeqLen, Vocab: p.Model.Vocab, Seed: s.Train.Seed,
		Sampling: s.Data.Sampling, Weights: s.Data.Weights,
		Documents: s.Data.Documents, DocumentMask: p.Batch.Documents,
	}
	for _, f := range s.Data.Train {
		spec.Train = append(spec.Train, data.Source{Path: f.Path, Weight: weight(f)})
	}
	for _, f := range s.Data.Valid {
		spec.Valid = append(spec.Valid, data.Source{Path: f.Path, Weight: weight(f)})
	}
	return data.Open(spec)
}

// weight returns the file's weight, or 1 if it has none.
func weight(f program.File) float64 {
	if f.Weight == 0 {
		return 1
	}
	return f.Weight
}

// ExitCode returns the exit code of an error of the data. Changed files count as wrong input, because a restarted run
// would train on their new content.
func ExitCode(err error) int {
	var bad *data.InputError
	var changed *data.ChangedError
	if errors.As(err, &bad) || errors.As(err, &changed) {
		return exit.Input
	}
	return exit.Failed
}

// OpenFiles opens the job's files and returns them with a hash of samples of their contents. It gives up if stop is
// closed, even while a disk hangs. warn receives warnings.
func OpenFiles(p *program.Program, s *program.Settings, stop <-chan struct{}, warn func(string)) (*data.Set, string,
	error) {
	type opened struct {
		set     *data.Set
		sampled string
		err     error
	}
	done := make(chan opened, 1)
	go func() {
		o := opened{}
		o.set, o.err = openData(p, s, warn)
		if o.err == nil {
			o.sampled, o.err = o.set.Sampled()
			if o.err != nil {
				o.set.Close()
			}
		}
		done <- o
	}()
	var late <-chan time.Time
	for {
		select {
		case o := <-done:
			return o.set, o.sampled, o.err
		case <-stop:
			stop, late = nil, time.After(stopWithin)
		case <-late:
			return nil, "", exit.Errorf(exit.OnRequest,
				"stopped on request while the data files were being opened, which the disk has not answered yet; "+
					"nothing was trained")
		}
	}
}

// Prompt is a text that a model is to continue.
type Prompt struct {
	Text      string
	From      string // what gave it, for messages: train.eval.sample or --generate
	Tokenizer string // value of data.tokenizer
	Vocab     int    // of the model
	IsTokens  bool   // the data are tokens of a tokenizer that is not known, unless Tokenizer names it
}

// Check refuses a prompt that data.tokenizer cannot convert to tokens of the vocabulary. No text is valid.
func (p *Prompt) Check() error {
	switch {
	case p.Text == "":
		return nil
	case !data.IsBytes(p.Tokenizer):
		return p.checkTokens()
	case p.IsTokens:
		return exit.Errorf(exit.Input, "%s is set, but the data are tokens of a vocabulary of %d: a prompt can be "+
			"text only if data.tokenizer names their tokenizer, or if the tokens are bytes, as in text files or "+
			"with a vocabulary of 256; %s", p.From, p.Vocab, p.withoutTokenizer())
	}
	for i, c := range []byte(p.Text) {
		if int(c) >= p.Vocab {
			return exit.Errorf(exit.Input, "%s: byte %d of the prompt is %d, but the model's vocabulary is %d (0 to "+
				"%d); %suse a prompt of such bytes", p.From, i, c, p.Vocab, p.Vocab-1, p.remove())
		}
	}
	return nil
}

// isFlag reports whether a flag gave the prompt, not a setting.
func (p *Prompt) isFlag() bool { return strings.HasPrefix(p.From, "--") }

// remove returns the advice to remove the prompt from the settings.
func (p *Prompt) remove() string {
	if p.isFlag() {
		return ""
	}
	return "remove the key, or "
}

// withoutTokenizer returns what to do if the tokenizer is not known.
func (p *Prompt) withoutTokenizer() string {
	if p.isFlag() {
		return "set data.tokenizer in the job and compile again"
	}
	return "remove it (--set " + p.From + "=null)"
}

// checkTokens refuses a prompt that a tokenizer other than bytes cannot convert.
func (p *Prompt) checkTokens() error {
	use, err := data.NewTokenizer(p.Tokenizer)
	if err != nil {
		return exit.Errorf(exit.Input, "%s", err)
	}
	tokens, err := use.Encode(nil, []byte(p.Text), true)
	if err != nil {
		return exit.Errorf(exit.Input, "%s: %s; use another prompt", p.From, err)
	}
	if len(tokens) == 0 {
		return exit.Errorf(exit.Input, "%s: %s has no token for any character of the prompt; use another prompt",
			p.From, p.Tokenizer)
	}
	for _, t := range tokens {
		if int(t) >= p.Vocab {
			return exit.Errorf(exit.Input, "%s: the prompt has the token %d, but the model's vocabulary is %d (0 to "+
				"%d); use the tokenizer that the model was made for", p.From, t, p.Vocab, p.Vocab-1)
		}
	}
	return nil
}
