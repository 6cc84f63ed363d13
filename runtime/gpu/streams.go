//go:build cuda && linux

package gpu

import (
	"context"
	"fmt"
	"time"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
)

// workStream is a stream with the memory and the event that its calls share.
type workStream struct {
	stream  *cuda.Stream
	scratch cuda.Memory
	mark    *cuda.Event // marks the last work that another stream waits for
	used    bool        // since the streams were joined
}

// newStream creates a stream of the device. Communication has a high priority, so that it does not wait until
// all blocks of a GEMM have started.
func (d *executor) newStream(priority int) (*workStream, error) {
	s, err := cuda.NewStream(priority)
	if err != nil {
		return nil, err
	}
	s.EarlyLaunch = d.earlyLaunch
	l := &workStream{stream: s}
	d.streams = append(d.streams, l)
	l.mark, err = cuda.NewEvent(false)
	return l, err
}

// after makes the work that is enqueued from now on wait for the present work of another stream.
func (l *workStream) after(other *workStream) {
	rt.Check(other.stream.Record(other.mark))
	rt.Check(l.stream.Wait(other.mark))
	l.used = true
}

// joinStreams makes the next work of the compute stream wait for all other streams in use.
func (d *communication) joinStreams() {
	for _, l := range d.streams {
		if l.used && l != d.compute {
			d.compute.after(l)
		}
		l.used = false
	}
	for _, p := range d.pipes {
		if p.comm != nil {
			rt.Check(p.comm.SettleAll(d.compute.stream))
		}
	}
}

// pipe is the connection of a stage to the next or the previous one.
type pipe struct {
	*workStream
	comm *comm.Comm // nil if this rank has both stages
	peer int        // rank of the other stage in comm

	toSelf     []int          // offsets of messages to itself
	preposted  cuda.Memory    // the buffer of a preposted receive; no bytes: there is none
	sentEvents [2]*cuda.Event // of the last two messages
	sent       int            // messages in this step
	awaited    int            // messages that Taken has waited for
}

// openStreams creates the streams, except those of pipes.
func (d *executor) openStreams() (err error) {
	d.compute, err = d.newStream(cuda.NormalPriority)
	if err != nil {
		return err
	}
	d.current = d.compute
	d.bucketWork, err = d.newStream(cuda.HighPriority)
	if err != nil {
		return err
	}
	d.uploads, err = d.newStream(cuda.NormalPriority)
	return err
}

// openLines creates the communicators that connect this rank with others.
func (d *communication) openLines(m *machine) error {
	d.jobs = make([][jobKinds]*cuda.Event, len(d.rank.Stage.Buckets))
	d.commByLine, d.pipes = map[string]*comm.Comm{}, map[string]*pipe{}
	ctx, stop := d.runContext()
	defer stop()
	met := max(firstMeeting, d.rank.Timeout())
	ctx, late := context.WithTimeoutCause(ctx, met, fmt.Errorf("not all ranks have connected within %v (--timeout)",
		met))
	defer late()
	if m.nccl != nil {
		const ctas = 1 // it only serves to split communicators from it
		world, err := m.nccl.Join(ctx, m.id, d.rank.ID, m.ranks, ctas)
		if err != nil {
			return err
		}
		world.Patience, world.Name = met, "all ranks" // the communicators that are split from it inherit its patience
		d.comms = append(d.comms, world)
	}
	for _, l := range d.rank.Lines() {
		if err := d.openLine(ctx, m, l); err != nil {
			return err
		}
	}
	d.stopWatch, d.watchStopped = make(chan struct{}), make(chan struct{})
	go d.watch()
	return d.connect(m)
}

// firstMeeting is the minimum time that ranks wait for each other at first, because some may compile
// kernels for minutes.
const firstMeeting = 10 * time.Minute

// openLine creates the communicator of a line, which all ranks do at once, and the stream of a line between
// stages.
func (d *communication) openLine(ctx context.Context, m *machine, l rt.Line) (err error) {
	c, err := d.split(ctx, m, l)
	if err != nil {
		return err
	}
	if c != nil {
		d.commByLine[l.Name] = c
	}
	if !l.IsPipe || len(l.Ranks) == 0 {
		return nil
	}
	p := &pipe{comm: c}
	if c != nil {
		p.peer = 1 - c.Rank
	}
	p.workStream, err = d.newStream(cuda.HighPriority)
	if err != nil {
		return err
	}
	d.pipes[l.Name] = p
	for i := range p.sentEvents {
		p.sentEvents[i], err = cuda.NewEvent(false)
		if err != nil {
			return err
		}
	}
	return nil
}

// watchInterval is the time between two looks at NCCL's state and at the deadline.
var watchInterval = time.Second

// closeTimeout is the time limit for closing a communicator.
const closeTimeout = 10 * time.Second

// closeLines closes communicators, streams and events.
func (d *communication) closeLines() {
	d.closeComms()
	for i, l := range d.streams {
		end := func() { _ = l.stream.Synchronize() }
		if d.failed() {
			d.patiently(fmt.Sprint("the work on stream ", i), end)
		} else {
			end()
		}
		_ = l.stream.Close()
		if l.mark != nil {
			_ = l.mark.Close()
		}
	}
	for _, p := range d.pipes {
		closeEvents(p.sentEvents[:])
	}
	for i := range d.jobs {
		closeEvents(d.jobs[i][:])
	}
}

func closeEvents(events []*cuda.Event) {
	for _, e := range events {
		if e != nil {
			_ = e.Close()
		}
	}
}
