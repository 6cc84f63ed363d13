package runtime

import (
	"time"

	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/exit"
)

// Before a step a run waits for its samples. A slow disk may take long or hang, and a request to stop must still be
// obeyed. In a team all processes must stop before the same step, so none begins a step before each has its batch.

// lateEvery is how often processes with a ready batch check whether the others are ready.
const lateEvery = time.Second

// readFrom sets the prefetcher of the next batches. Until the processes have exchanged reports, it counts as late.
func (r *run) readFrom(f *prefetcher) { r.feed, r.feedLate = f, true }

// endSteps finishes all steps if a process of the team may have to wait for its next batch.
func (r *run) endSteps() error {
	if r.team.Peers == nil || !r.feedLate || len(r.retries) > 0 {
		return nil
	}
	return r.finishAll()
}

// nextBatch returns the next batch, or errStopRequested if the run must stop before the batch is ready.
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

// openFiles opens the job's files. The run can be stopped even while a disk hangs.
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
			return nil, "", exit.Errorf(exit.OnRequest,
				"stopped on request while the data files were being opened, which the disk has not answered yet; "+
					"nothing was trained")
		}
	}
}

// checkPrompt refuses a prompt that cannot be converted to tokens.
func (r *run) checkPrompt() error {
	prompt, vocab := r.s.Train.Eval.Sample, r.p.Model.Vocab
	if prompt == "" {
		return nil
	}
	if r.files != nil && !r.files.Bytes() {
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
