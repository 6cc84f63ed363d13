//go:build cuda && linux

package gpu

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	rt "github.com/planc-dev/planc/runtime"
)

// grace is how long what ends a run that has failed may take; then the process ends without it. NCCL's abort waits for
// kernels that may wait for a peer that is gone, and a process that hangs keeps its GPUs.
var grace = 30 * time.Second

// endProcess ends the process; a test has another.
var endProcess = os.Exit

// patiently calls f. If that does not come to its end, the process does: with why the run has failed, and what is
// waited for.
func (d *device) patiently(what string, f func()) {
	timer := time.AfterFunc(grace, func() {
		fmt.Fprintf(os.Stderr, "rank %d: the run has failed, and %s does not end within %v, so that the process is "+
			"ended: %v\n", d.rank.ID, what, grace, d.rank.Failure())
		endProcess(rt.ExitFailed)
	})
	defer timer.Stop()
	f()
}

// underway is what a rank's goroutine does on its device, and since when.
type underway struct {
	what  string
	since time.Time
}

// begins notes what the rank's goroutine does until ended is called: if that takes longer than the deadline, watch has
// the run fail.
func (d *device) begins(what string) (ended func()) {
	before := d.under.Swap(&underway{what, time.Now()})
	return func() { d.under.Store(before) }
}

// longSteps is how many of the longest step so far the deadline allows besides the timeout: a step that begins while
// the one before it runs waits for that, evaluations differ from steps, and the first step is measured by what was
// predicted.
const longSteps = 10

// deadline is how long a call on the device may take.
func (d *device) deadline() time.Duration {
	step := max(d.rank.Program.Predict.StepSeconds, math.Float64frombits(d.longest.Load()))
	if !(step < 1e8) { // what is not known, or would overflow
		step = 0
	}
	return d.rank.Timeout() + time.Duration(longSteps*step*float64(time.Second))
}

// hung is the error for what the rank does, if it takes longer than the deadline; else nil.
func (d *device) hung(now time.Time) error {
	u := d.under.Load()
	if u == nil {
		return nil
	}
	limit := d.deadline()
	if now.Sub(u.since) <= limit {
		return nil
	}
	text := fmt.Sprintf("rank %d: %s has not ended after %v: a collective waits for a rank that does not come, or a "+
		"GPU hangs. The deadline is --timeout or "+
		"PLANC_TIMEOUT (%v), and ten times the longest step", d.rank.ID, u.what, limit.Round(time.Millisecond),
		d.rank.Timeout())
	for i, c := range d.comms {
		if i == 4 {
			return fmt.Errorf("%s; and %d more", text, len(d.comms)-i)
		}
		text += "; " + c.Last()
	}
	return errors.New(text)
}

// await waits, in the middle of a run, for what was put on the device. If the run fails meanwhile, that is waited for
// no longer than is grace.
func (d *device) await(what string, wait func() error) { rt.Check(d.awaited(what, wait)) }

// awaited is await that returns the error.
func (d *device) awaited(what string, wait func() error) error {
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
