//go:build cuda && linux

package gpu

import (
	"fmt"
	"os"
	"time"

	rt "github.com/planc-dev/planc/runtime"
)

// grace is how long what ends a run that has failed may take; then the process ends without it. NCCL's abort waits for kernels that may
// wait for a peer that is gone, and a process that hangs keeps its GPUs.
var grace = 30 * time.Second

// endProcess ends the process; a test has another.
var endProcess = os.Exit

// patiently calls f. If that does not come to its end, the process does: with why the run has failed, and what is waited for.
func (d *device) patiently(what string, f func()) {
	timer := time.AfterFunc(grace, func() {
		fmt.Fprintf(os.Stderr, "rank %d: the run has failed, and %s does not end within %v, so that the process is ended: %v\n", d.rank.ID, what, grace, d.rank.Failure())
		endProcess(rt.ExitFailed)
	})
	defer timer.Stop()
	f()
}

// await waits, in the middle of a run, for what was put on the device. If the run fails meanwhile, that is waited for no longer than is grace.
func (d *device) await(what string, wait func() error) {
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
	rt.Check(err)
}
