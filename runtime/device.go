package runtime

import (
	"context"
	"time"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/launch"
)

// Devices takes a program's ranks to devices other than this CPU.
type Devices interface {
	// Open finds a device for each of the ranks that this process has and says what all ranks' are: "2 × NVIDIA H200".
	// Its error is of the machine.
	Open(t *Team) (name string, err error)
	// Meet joins the other processes of a launch, which must be of the same program and have been started with the same
	// settings. say is told how the joining goes.
	Meet(ctx context.Context, l *launch.Launch, program, settings string, within time.Duration,
		say func(string)) (Peers, error)
	// Take gives the rank its device. The rank's goroutine calls it, those of all ranks at once.
	Take(r *Rank) (Device, error)
}

// Device does a rank's work, in memory laid out as the rank's arena. The rank's goroutine calls it, in the order in
// which a CPU would do the work; what is called within Step and Infer begins the work and does not wait for it. Offsets
// and sizes are in bytes of the arena. What fails does so by [Check].
type Device interface {
	// Step begins an optimizer step on the batch that was loaded last. work begins all of it, in order, and may be left
	// out where what it began in a step before can be begun again as a whole. If the step before was skipped, and
	// nobody has heard of that, the rank's Otherwise holds.
	Step(work func())
	// AwaitStep waits for the end of the first step that was begun and not heard of. Afterwards the rank's LossSum,
	// Norm, Clip and Skip are that step's.
	AwaitStep() StepResult
	// CanLaunchAhead tells whether a step may be begun before the one begun last has been heard of; on all ranks it is the
	// same.
	CanLaunchAhead() bool
	// LastCompleted is the number of the last step whose results have come, 0 for none. It is for whoever asks why the
	// run has failed.
	LastCompleted() int
	// Infer does forward passes, which work begins. Afterwards the rank's LossSum is theirs.
	Infer(work func())

	// Load brings the batch in the arena to the device.
	Load()
	// Upload brings a part of the arena to the device, and Pull back. Both wait.
	Upload(at, bytes int)
	Download(at, bytes int)

	// Clear makes a part of the arena zero.
	Clear(at, bytes int)
	// Send hands a part of the arena to the other rank of a line, Receive takes what that one sends next, and Taken
	// makes what follows wait until the first message that Taken was not asked about has left.
	Send(line string, at, bytes int)
	Receive(line string, at, bytes int)
	AwaitSent(line string)
	// Start begins a job of a bucket beside what follows, and Wait makes what follows wait for it.
	Start(bucket int, job Job)
	Wait(bucket int, job Job)

	// SumLoss, ClipGradients and Optimize are [ReduceLoss], [ClipGradients] and [Optimize], where the results stay on
	// the device. Optimize heeds that the step is skipped.
	SumLoss(group int)
	ClipGradients(world int)
	Optimize(bucket int)

	// Memory is how many bytes of the device the rank has taken.
	Memory() int64
	// Close gives them back, whatever has happened.
	Close()
}

// Job is what is done to a bucket beside the computation.
type Job int

// The jobs of a bucket.
const (
	Reducing   Job = reducing   // its gradients are summed, at the end of a step
	Gathering  Job = gathering  // its updated parameters are made whole
	Scattering Job = scattering // a micro-batch's gradients of it are summed, and added to this rank's part
	Fetching   Job = fetching   // its parameters are made whole for a block
)

// Check ends the command that the rank runs with an error, if it is one: for what generated code calls, which has no
// error results.
func Check(err error) { check(err) }

// FreeScratch is closed when a rank has failed: then what waits for it on a device will not come to its end.
func (r *Rank) Done() <-chan struct{} { return r.world.Done() }

// Failure is with what a rank has failed, nil if none has.
func (r *Rank) Failure() error { return r.world.Err() }

// Timeout is how long a collective may wait for a rank that does not come.
func (r *Rank) Timeout() time.Duration { return r.world.Timeout() }

// Fail ends the run with an error that was met beside the rank's goroutine, unless it has failed already.
func (r *Rank) Fail(err error) { r.world.Fail(err) }

// send hands bytes of the arena from at on, as many as a block's input has, to the next stage or the one before.
func (r *Rank) send(p *comm.Pipe, at int) {
	if r.Device != nil {
		r.Device.Send(p.Name(), at, r.Program.Stream)
		return
	}
	check(p.Send(r.Arena[at : at+r.Program.Stream]))
}

// receive takes them.
func (r *Rank) receive(p *comm.Pipe, at int) {
	if r.Device != nil {
		r.Device.Receive(p.Name(), at, r.Program.Stream)
		return
	}
	check(p.Receive(r.Arena[at : at+r.Program.Stream]))
}

// waitSent returns when, or makes what follows wait until, one more message has left the rank's memory.
func (r *Rank) waitSent(p *comm.Pipe) {
	if r.Device != nil {
		r.Device.AwaitSent(p.Name())
		return
	}
	check(p.WaitSent())
}

// zero clears bytes of the arena.
func (r *Rank) zero(at, bytes int) {
	if r.Device != nil {
		r.Device.Clear(at, bytes)
		return
	}
	clear(r.Arena[at : at+bytes])
}

// state are the regions that outlive a step.
func stateRegions(a *Arena) []Region {
	return []Region{a.Params, a.Master, a.Moment1, a.Moment2}
}

// openDevices gives each rank its device.
func (c *crew) openDevices(from Devices) error {
	if from == nil {
		return nil
	}
	return c.do(func(r *Rank) {
		var err error
		r.Device, err = from.Take(r)
		check(err)
	})
}

// push brings the ranks' state to their devices.
func (c *crew) push() error {
	if c.mine[0].Device == nil {
		return nil
	}
	return c.do(func(r *Rank) {
		for _, g := range stateRegions(&r.Stage.Arena) {
			r.Device.Upload(g.Offset, g.Size)
		}
	})
}

// pull brings the ranks' state, and what else is asked for, back.
func (c *crew) pull(more ...func(*Arena) Region) error {
	if c.mine[0].Device == nil {
		return nil
	}
	return c.do(func(r *Rank) {
		regions := stateRegions(&r.Stage.Arena)
		for _, f := range more {
			regions = append(regions, f(&r.Stage.Arena))
		}
		for _, g := range regions {
			r.Device.Download(g.Offset, g.Size)
		}
	})
}
