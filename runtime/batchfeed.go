package runtime

import (
	"time"

	"github.com/planc-dev/planc/runtime/feed"
)

// Before a step a run waits for its samples. A slow disk may take long or hang, and a request to stop must still be
// obeyed. In a team all processes must stop before the same step, so none begins a step before each has its batch.

// lateEvery is how often processes with a ready batch check whether the others are ready.
const lateEvery = time.Second

// readFrom sets the prefetcher of the next batches. Until the processes have exchanged reports, it counts as late.
func (r *run) readFrom(f *feed.Prefetcher) { r.feed, r.feedLate = f, true }

// endSteps finishes all steps if a process of the team may have to wait for its next batch.
func (r *run) endSteps() error {
	if r.team.Peers == nil || !r.feedLate || len(r.retries) > 0 {
		return nil
	}
	return r.finishAll()
}

// nextBatch returns the next batch, or errStopRequested if the run must stop before the batch is ready.
func (r *run) nextBatch() (*feed.Batch, error) {
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
