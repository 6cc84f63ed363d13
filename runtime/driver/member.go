package driver

import (
	"time"

	"github.com/planc-dev/planc/runtime/feed"
)

// Before a step a run waits for its samples. A slow disk may take long or hang, and a request to stop must still be
// obeyed. In a team all processes must stop before the same step, so none begins a step before each has its batch.

// member is this process's part in the team: it takes its next batches, exchanges results with the other processes, and
// finds out whether the run must stop.
type member struct {
	*job
	rows          *feed.Prefetcher // of training
	feed          *feed.Prefetcher // source of the next batch: rows, or the prefetcher of an evaluation
	feedLate      bool             // a process of the team may have to wait for its next batch
	readError     error            // error that ended the reading of data
	unfinished    int              // steps that have begun and not ended
	stopRequested bool             // a process of the team was asked to stop
	ended         chan struct{}    // closed at the end of the run
}

// lateEvery is how often processes with a ready batch check whether the others are ready.
const lateEvery = time.Second

// readFrom sets the prefetcher of the next batches. Until the processes have exchanged reports, it counts as late.
func (r *member) readFrom(f *feed.Prefetcher) { r.feed, r.feedLate = f, true }

// endSteps finishes all steps if a process of the team may have to wait for its next batch.
func (r *stepper) endSteps() error {
	if r.team.Peers == nil || !r.member.feedLate || len(r.retries) > 0 {
		return nil
	}
	return r.finishAll()
}

// nextBatch returns the next batch, or errStopRequested if the run must stop before the batch is ready.
func (r *member) nextBatch() (*feed.Batch, error) {
	if r.team.Peers == nil {
		return r.feed.Take(r.ctx.Done())
	}
	for r.feedLate && !r.stopRequested {
		r.feed.Wait(r.ctx.Done(), lateEvery)
		if err := r.exchangeReports(); err != nil {
			return nil, err
		}
	}
	if r.stopRequested {
		return nil, feed.ErrStopRequested
	}
	return r.feed.Take(nil)
}
