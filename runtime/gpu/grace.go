//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// watchdog ends a run that hangs or has failed: it watches the deadline of the rank's activity and the state
// of its communicators, and aborts them.
type watchdog struct {
	rank         *rt.Rank
	comms        []*cuda.Comm
	activity     atomic.Pointer[activity] // what the rank's goroutine does now
	longestStep  atomic.Uint64            // duration of the longest step so far, in seconds, as the bits of a float64
	stopWatch    chan struct{}            // closed to stop watch: the communicators need not be aborted any more
	watchStopped chan struct{}            // closed when watch has returned
}

// grace is the time limit for cleaning up after a failed run. After it the process ends without. NCCL's
// abort waits for kernels that may wait for a peer that is gone, and a process that hangs keeps its GPUs.
var grace = 30 * time.Second

// endProcess ends the process. Tests replace it.
var endProcess = os.Exit

// patiently calls f. If f does not return within grace, it ends the process with the run's error and what
// was waited for.
func (d *watchdog) patiently(what string, f func()) {
	timer := time.AfterFunc(grace, func() {
		fmt.Fprintf(os.Stderr, "rank %d: the run has failed, and %s has not ended within %v; ending the process. "+
			"The run's error: %v\n", d.rank.ID, what, grace, d.rank.Failure())
		endProcess(rt.ExitFailed)
	})
	defer timer.Stop()
	f()
}

// activity is what a rank's goroutine does on its device, and since when.
type activity struct {
	what  string
	since time.Time
}

// begins records what the rank's goroutine does until ended is called. If that takes longer than the
// deadline, watch fails the run.
func (d *watchdog) begins(what string) (ended func()) {
	before := d.activity.Swap(&activity{what, time.Now()})
	return func() { d.activity.Store(before) }
}

// longSteps is how many times the longest step so far the deadline allows in addition to the timeout. A
// step that is launched while the previous one runs waits for it, evaluations take longer than steps, and
// the first step is compared with the prediction.
const longSteps = 10

// deadline returns the time limit of a call on the device.
func (d *watchdog) deadline() time.Duration {
	step := max(d.rank.Program.Predict.StepSeconds, math.Float64frombits(d.longestStep.Load()))
	if !(step < 1e8) { // unknown, or would overflow
		step = 0
	}
	return d.rank.Timeout() + time.Duration(longSteps*step*float64(time.Second))
}

// hung returns an error if the rank's present activity exceeds the deadline, otherwise nil.
func (d *watchdog) hung(now time.Time) error {
	u := d.activity.Load()
	if u == nil {
		return nil
	}
	limit := d.deadline()
	if now.Sub(u.since) <= limit {
		return nil
	}
	text := fmt.Sprintf("rank %d: %s has not ended after %v: a collective waits for a missing rank, or a "+
		"GPU hangs. The deadline is the timeout (--timeout or "+
		"PLANC_TIMEOUT, %v) plus ten times the longest step", d.rank.ID, u.what, limit.Round(time.Millisecond),
		d.rank.Timeout())
	for i, c := range d.comms {
		if i == 4 {
			return fmt.Errorf("%s; and %d more", text, len(d.comms)-i)
		}
		text += "; " + c.Last()
	}
	return errors.New(text)
}

// await waits for enqueued work in the middle of a run. If the run fails meanwhile, it waits no longer than
// grace.
func (d *watchdog) await(what string, wait func() error) { rt.Check(d.awaitErr(what, wait)) }

// awaitErr is await, but returns the error.
func (d *watchdog) awaitErr(what string, wait func() error) error {
	defer d.begins(what)()
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
		case <-d.rank.Done():
			d.patiently(what, func() { <-ended })
		}
	}()
	err := wait()
	close(ended)
	return err
}

// failed reports whether the run has failed.
func (d *watchdog) failed() bool {
	select {
	case <-d.rank.Done():
		return true
	default:
		return false
	}
}

// runContext returns a context that is canceled when the run fails.
func (d *watchdog) runContext() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-d.rank.Done():
			cancel(errors.New("another rank has failed"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// watch aborts the communicators when the run fails, so that no rank waits for collectives that cannot
// complete. It fails the run if NCCL reports an error of a communicator, or if the deadline has passed.
func (d *watchdog) watch() {
	defer close(d.watchStopped)
	look := time.NewTicker(watchInterval)
	defer look.Stop()
	for {
		select {
		case <-d.stopWatch:
			return
		case <-d.rank.Done():
			d.abort()
			return
		case now := <-look.C:
			if err := d.hung(now); err != nil {
				d.rank.Fail(err)
				continue
			}
			for _, c := range d.comms {
				if err := c.Failed(); err != nil {
					d.rank.Fail(fmt.Errorf("rank %d: %w", d.rank.ID, err))
				}
			}
		}
	}
}

// abort aborts all communicators concurrently. One ends only after all graphs with its work, and a graph
// ends only if none of its work waits in another communicator.
func (d *watchdog) abort() {
	var all sync.WaitGroup
	for _, c := range d.comms {
		all.Go(func() { d.patiently("the abort of NCCL's communicator "+c.Name, func() { _ = c.Abort() }) })
	}
	all.Wait()
}

// closeComms closes the communicators.
func (d *watchdog) closeComms() {
	switch {
	case d.stopWatch == nil: // not all communicators were created
		d.abort()
		return
	case d.failed():
		<-d.watchStopped
		return
	}
	close(d.stopWatch)
	<-d.watchStopped
	ctx, stop := context.WithTimeoutCause(context.Background(), closeTimeout,
		errors.New("not all ranks have closed it"))
	defer stop()
	for _, c := range slices.Backward(d.comms) {
		_ = c.Close(ctx)
	}
}
