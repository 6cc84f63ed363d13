package feed

import (
	"errors"
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

// CheckPrompt refuses a prompt that cannot be converted to tokens of a vocabulary. set is nil if the data are not
// files.
func CheckPrompt(prompt string, vocab int, set *data.Set) error {
	if prompt == "" {
		return nil
	}
	if set != nil && !set.Bytes() {
		return exit.Errorf(exit.Input, "train.eval.sample is set, but the data are tokens of a vocabulary of %d: a "+
			"prompt can be text only if the tokens are bytes, "+
			"as in text files or with a vocabulary of 256; remove it (--set train.eval.sample=null)", vocab)
	}
	for i, c := range []byte(prompt) {
		if int(c) >= vocab {
			return exit.Errorf(exit.Input,
				"train.eval.sample: byte %d of the prompt is %d, but the model's vocabulary is %d (0 to %d); remove "+
					"the key, or use a prompt of such bytes", i, c, vocab, vocab-1)
		}
	}
	return nil
}
