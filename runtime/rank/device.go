package rank

import (
	"context"
	"time"

	"github.com/planc-dev/planc/runtime/launch"
)

// Devices is a kind of device other than this CPU, on which ranks run.
type Devices interface {
	// Open finds a device for each rank of this process and returns a name for those of all ranks: "2 × NVIDIA H200".
	// Its error is a problem of the machine.
	Open(t *launch.Team) (name string, err error)
	// Meet joins the other processes of a launch. They must run the same program with the same settings. It calls say
	// with messages about its progress.
	Meet(ctx context.Context, l *launch.Launch, program, settings string, within time.Duration,
		say func(string)) (launch.Peers, error)
	// Take opens the rank's device. The rank's goroutine calls it, concurrently for all ranks.
	Take(r *Rank) (Device, error)
}

// Device executes a rank's work in memory with the layout of the rank's arena. The rank's goroutine calls it, in the
// order in which a CPU would do the work. Calls within Step and Infer only enqueue work and do not wait for it. Offsets
// and sizes are in bytes of the arena. Failures are reported through [Check].
type Device interface {
	// Step enqueues an optimizer step on the batch that was loaded last. work enqueues all of it, in order. Step may
	// skip the call if it can replay the work of an earlier step as a whole. If the step before was skipped but its
	// result is not known yet, the rank's AfterSkip applies.
	Step(work func())
	// AwaitStep waits for the end of the first step without a result and returns its result. It sets the rank's
	// LossSum, Norm, Clip and Skip to those of that step.
	AwaitStep() StepResult
	// CanLaunchAhead reports whether a step may begin before the result of the last one is known. It is the same on all
	// ranks.
	CanLaunchAhead() bool
	// LastCompleted returns the number of the last step whose result has arrived, 0 for none. Error messages use it.
	LastCompleted() int
	// Infer runs the forward passes that work enqueues, and sets the rank's LossSum.
	Infer(work func())

	// Load copies the batch in the arena to the device.
	Load()
	// Upload copies a part of the arena to the device, and Download copies it back. Both wait.
	Upload(at, bytes int)
	Download(at, bytes int)

	// Clear sets a part of the arena to zero.
	Clear(at, bytes int)
	// Send sends a part of the arena to the other rank of a line. Receive receives the next message from it, or copies
	// it if its receive was preposted. AwaitSent makes later work wait until the first message that it has not yet
	// waited for has left.
	Send(line string, at, bytes int)
	Receive(line string, at, bytes int)
	// PrepostReceive receives the next message into a part of the arena, concurrently with later work.
	PrepostReceive(line string, at, bytes int)
	AwaitSent(line string)
	// Start begins a job of a bucket that overlaps later work. Wait makes later work wait for it.
	Start(bucket int, job Job)
	Wait(bucket int, job Job)

	// SumLoss, ClipGradients and Optimize do the same as [ReduceLoss], [ClipGradients] and [Optimize], but their
	// results stay on the device. Optimize does nothing if the step is skipped.
	SumLoss(group int)
	ClipGradients(world int)
	Optimize(bucket int)

	// Memory returns the bytes of device memory that the rank has allocated.
	Memory() int64
	// Close frees the memory. It must succeed in any state.
	Close()
}

// Job is a kind of work on a bucket that overlaps the computation.
type Job int

// The jobs of a bucket.
const (
	Reducing   Job = reducing   // reduce its gradients at the end of a step
	Gathering  Job = gathering  // all-gather its updated parameters
	Scattering Job = scattering // reduce-scatter a micro-batch's gradients and add them to this rank's part
	Fetching   Job = fetching   // all-gather its parameters for one block
)

// Done returns a channel that is closed when a rank has failed. Device work that waits for that rank will never end.
func (r *Rank) Done() <-chan struct{} { return r.world.Done() }

// Failure returns the error of the first rank that has failed; nil if none has.
func (r *Rank) Failure() error { return r.world.Err() }

// Timeout returns how long a collective may wait for a missing rank.
func (r *Rank) Timeout() time.Duration { return r.world.Timeout() }

// Fail ends the run with an error that occurred outside of the rank's goroutine, unless the run has already failed.
func (r *Rank) Fail(err error) { r.world.Fail(err) }

// zeroBytes sets bytes of the arena to zero.
func zeroBytes(r *Rank, at, bytes int) {
	if r.Device != nil {
		r.Device.Clear(at, bytes)
		return
	}
	clear(r.Arena[at : at+bytes])
}
