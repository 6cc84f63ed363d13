package runtime

import (
	"time"

	"github.com/planc-dev/planc/runtime/data"
)

// What a run waits for before a step is its samples. A disk may take long, or hang for ever, and a request to stop is
// heard all the same. In a team all processes must hear it before the same step: none begins a step before each has its
// batch.

// lateEvery is how often processes whose batch is ready ask after one that is not.
const lateEvery = time.Second

// readFrom has the next batches taken from a prefetcher. Whether it is late in some process is not known before they
// tell.
func (r *run) readFrom(f *prefetcher) { r.feed, r.feedLate = f, true }

// endSteps ends the steps under way if a process of the team may have to wait for its next batch.
func (r *run) endSteps() error {
	if r.team.Peers == nil || !r.feedLate || len(r.retries) > 0 {
		return nil
	}
	return r.finishAll()
}

// nextBatch is the next batch, or errAsked if the run is to stop while the batch is not there.
func (r *run) nextBatch() (*batch, error) {
	if r.team.Peers == nil {
		return r.feed.take(r.ctx.Done())
	}
	for r.feedLate && !r.stopRequested {
		r.feed.wait(r.ctx.Done(), lateEvery)
		if err := r.exchangeReports(); err != nil {
			return nil, err
		}
	}
	if r.stopRequested {
		return nil, errStopRequested
	}
	return r.feed.take(nil)
}

// openFiles opens the job's files. A disk that hangs does not keep the run from stopping.
func (r *run) openFiles() (set *data.Set, sampled string, err error) {
	type opened struct {
		set     *data.Set
		sampled string
		err     error
	}
	done := make(chan opened, 1)
	go func() {
		o := opened{}
		o.set, o.err = openData(r.p, &r.s, func(text string) { r.report.warn(text) })
		if o.err == nil {
			o.sampled, o.err = o.set.Sampled()
			if o.err != nil {
				o.set.Close()
			}
		}
		done <- o
	}()
	asked := r.ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case o := <-done:
			return o.set, o.sampled, o.err
		case <-asked:
			asked, late = nil, time.After(stopWithin)
		case <-late:
			return nil, "", exitf(ExitOnRequest,
				"stopped on request while the data files were being opened, which the disk has not answered yet; "+
					"nothing was trained")
		}
	}
}

// checkPrompt refuses a text to continue that cannot be turned into tokens.
func (r *run) checkPrompt() error {
	prompt, vocab := r.s.Train.Eval.Sample, r.p.Model.Vocab
	if prompt == "" {
		return nil
	}
	if r.files != nil && !r.files.Bytes() {
		return exitf(ExitInput, "train.eval.sample is given, and the data are tokens of a vocabulary of %d: a prompt "+
			"can be text only if tokens are bytes, "+
			"as in text files and in a vocabulary of 256; leave it out (--set train.eval.sample=null)", vocab)
	}
	for i, c := range []byte(prompt) {
		if int(c) >= vocab {
			return exitf(ExitInput, "train.eval.sample: byte %d of the prompt is %d, and the model's vocabulary is "+
				"%d (0 to %d); leave the key out, or give a prompt of such bytes",
				i, c, vocab, vocab-1)
		}
	}
	return nil
}
