//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// line is a stream with what its calls share.
type line struct {
	stream  *cuda.Stream
	scratch cuda.Memory
	mark    *cuda.Event // of the last thing that another line waits for
	used    bool        // since lines were joined
}

// newLine makes a line of the device.
func (d *device) newLine() (*line, error) {
	s, err := cuda.NewStream(0)
	if err != nil {
		return nil, err
	}
	l := &line{stream: s}
	d.lines = append(d.lines, l)
	l.mark, err = cuda.NewEvent(false)
	return l, err
}

// after makes what is put on the line from now on wait for what is on another now.
func (l *line) after(other *line) {
	rt.Check(other.stream.Record(other.mark))
	rt.Check(l.stream.Wait(other.mark))
	l.used = true
}

// join makes what comes next on the compute stream wait for all other lines that are in use.
func (d *device) join() {
	for _, l := range d.lines {
		if l.used && l != d.compute {
			d.compute.after(l)
		}
		l.used = false
	}
	for _, p := range d.pipes {
		if p.comm != nil && p.comm.local != nil {
			rt.Check(p.comm.local.settle(d.compute.stream, len(p.comm.local.pending)))
		}
	}
}

// pipe is a line from a stage to the one behind it or before it.
type pipe struct {
	*line
	comm *comm // nil where both stages are this rank's
	peer int   // the other one, in comm

	waiting []int          // offsets of messages to itself
	left    [2]*cuda.Event // the last messages
	sent    int            // in this step
	asked   int            // how many of them Taken was asked about
}

// openStreams makes those that are not a pipe's.
func (d *device) openStreams() (err error) {
	d.compute, err = d.newLine()
	if err != nil {
		return err
	}
	d.on = d.compute
	d.side, err = d.newLine()
	if err != nil {
		return err
	}
	d.copies, err = d.newLine()
	return err
}

// openLines makes what joins this rank's streams with those of others.
func (d *device) openLines(m *machine) error {
	d.jobs = make([][jobKinds]*cuda.Event, len(d.rank.Stage.Buckets))
	d.byLine, d.pipes = map[string]*comm{}, map[string]*pipe{}
	ctx, stop := d.until()
	defer stop()
	met := max(meeting, d.rank.Timeout())
	ctx, late := context.WithTimeoutCause(ctx, met, fmt.Errorf("ranks have not come within %v (--timeout)", met))
	defer late()
	if m.nccl != nil {
		world, err := m.nccl.Join(ctx, m.id, d.rank.ID, m.ranks)
		if err != nil {
			return err
		}
		world.Patience, world.Name = met, "all ranks" // the patience is that of its parts, too
		d.comms = append(d.comms, world)
	}
	for _, l := range d.rank.Lines() {
		if err := d.openLine(ctx, m, l); err != nil {
			return err
		}
	}
	d.watched, d.unwatched = make(chan struct{}), make(chan struct{})
	go d.watch()
	return d.connect(m)
}

// meeting is how long ranks may wait for each other when they first meet, at least: some compile kernels for minutes
// before.
const meeting = 10 * time.Minute

// openLine makes the communicator of a line, which all ranks do, and the stream of one between stages.
func (d *device) openLine(ctx context.Context, m *machine, l rt.Line) (err error) {
	comm, err := d.split(ctx, m, l.Name, l.Ranks)
	if err != nil {
		return err
	}
	if comm != nil {
		d.byLine[l.Name] = comm
	}
	if !l.Pipe || len(l.Ranks) == 0 {
		return nil
	}
	p := &pipe{comm: comm}
	if comm != nil {
		p.peer = 1 - comm.Rank
	}
	p.line, err = d.newLine()
	if err != nil {
		return err
	}
	d.pipes[l.Name] = p
	for i := range p.left {
		p.left[i], err = cuda.NewEvent(false)
		if err != nil {
			return err
		}
	}
	return nil
}

// watch aborts the communicators when the run fails, so that nobody waits for collectives that will not end, and has it
// fail when NCCL says that one of them has.
func (d *device) watch() {
	defer close(d.unwatched)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-d.watched:
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

// lookEvery is how often NCCL is asked, and the deadline looked at.
var lookEvery = time.Second

// abort aborts all communicators at once: one is ended only when no graph has work of it, and a graph ends when none of
// its work waits in another.
func (d *device) abort() {
	var all sync.WaitGroup
	for _, c := range d.comms {
		all.Go(func() { d.patiently("the abort of NCCL's communicator "+c.Name, func() { _ = c.Abort() }) })
	}
	all.Wait()
}

// patience is how long the end of a communicator may take.
const patience = 10 * time.Second

// closeComms ends the communicators.
func (d *device) closeComms() {
	switch {
	case d.watched == nil: // they were not all made
		d.abort()
		return
	case d.failed():
		<-d.unwatched
		return
	}
	close(d.watched)
	<-d.unwatched
	ctx, stop := context.WithTimeoutCause(context.Background(), patience, errors.New("its ranks do not end it"))
	defer stop()
	for _, c := range slices.Backward(d.comms) {
		_ = c.Close(ctx)
	}
}

// closeLines ends communicators, streams and events.
func (d *device) closeLines() {
	d.closeComms()
	for i, l := range d.lines {
		end := func() { _ = l.stream.Synchronize() }
		if d.failed() {
			d.patiently(fmt.Sprint("what was put on stream ", i), end)
		} else {
			end()
		}
		_ = l.stream.Close()
		if l.mark != nil {
			_ = l.mark.Close()
		}
	}
	for _, p := range d.pipes {
		closeEvents(p.left[:])
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
