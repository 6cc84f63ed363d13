//go:build cuda && linux

package comm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/planc-dev/planc/cuda"
)

// Launcher is what the device of a rank does for its communicators.
type Launcher struct {
	Call     func(name, types string, rows, cols int, args ...any)    // enqueues a kernel on the current stream
	Constant func(key any, bytes func() []byte) (device cuda.Pointer) // returns device memory with these bytes
	Failed   <-chan struct{}                                          // closed when the run has failed
}

// shared is one member's end of a hub.
type shared struct {
	device  Launcher
	hub     *hub
	me      int
	events  []*cuda.Event
	used    int      // events in use in this step
	pending []letter // messages that nobody has waited for
	group   *group   // the group operation in progress
}

// group is the sends and receives that are combined into one operation.
type group struct {
	sends    map[int]cuda.Pointer
	receives []func(all []call) error
}

// close frees the events.
func (l *shared) close() (err error) {
	for _, e := range l.events {
		err = errors.Join(err, e.Close())
	}
	return err
}

// event returns an event that has no other use in this step.
func (l *shared) event() (*cuda.Event, error) {
	if l.used == len(l.events) {
		e, err := cuda.NewEvent(false)
		if err != nil {
			return nil, err
		}
		l.events = append(l.events, e)
	}
	l.used++
	return l.events[l.used-1], nil
}

// marked returns an event that marks the present work of the stream.
func (l *shared) marked(s *cuda.Stream) (*cuda.Event, error) {
	e, err := l.event()
	if err != nil {
		return nil, err
	}
	return e, s.Record(e)
}

// collective runs f, this member's part of a collective, when the operands of all members are ready. Later
// work on the stream waits until all members are done.
func (l *shared) collective(s *cuda.Stream, mine call, f func(all []call) error) (err error) {
	mine.ready, err = l.marked(s)
	if err != nil {
		return err
	}
	mine.done, err = l.event()
	if err != nil {
		return err
	}
	l.hub.calls[l.me] = mine
	err = l.hub.meet(l.device.Failed)
	if err != nil {
		return err
	}
	all := append([]call(nil), l.hub.calls...)
	for i := range all {
		err = s.Wait(all[i].ready)
		if err != nil {
			return err
		}
	}
	err = f(all)
	if err != nil {
		return err
	}
	err = s.Record(mine.done)
	if err != nil {
		return err
	}
	err = l.hub.meet(l.device.Failed)
	if err != nil {
		return err
	}
	for i := range all {
		err = s.Wait(all[i].done)
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *shared) allReduce(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type, op cuda.Reduction) error {
	if to != from {
		if err := move(s, to, from, count*typeSize(t)); err != nil {
			return err
		}
	}
	name := map[cuda.Reduction]string{cuda.Sum: "all_reduce_sum", cuda.Max: "all_reduce_max"}[op]
	return l.collective(s, call{to: to}, func(all []call) error {
		n := len(all)
		lo, hi := count*l.me/n, count*(l.me+1)/n
		if lo < hi {
			l.device.Call(name, suffixes[t], 1, hi-lo, l.members(all, func(c *call) cuda.Pointer {
				return c.to
			}), n, int64(lo), int64(hi))
		}
		return nil
	})
}

func (l *shared) reduceScatter(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	return l.collective(s, call{from: from}, func(all []call) error {
		n := len(all)
		l.device.Call("reduce_scatter_sum", suffixes[t], 1, count, to, l.members(all, func(c *call) cuda.Pointer {
			return c.from
		}), n, 1, count, n*count, l.me*count)
		return nil
	})
}

func (l *shared) allGather(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	bytes := count * typeSize(t)
	return l.collective(s, call{from: from}, func(all []call) error {
		for i := range all {
			if at := to + cuda.Pointer(i*bytes); at != all[i].from {
				if err := move(s, at, all[i].from, bytes); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// together combines the sends and receives that f calls.
func (l *shared) together(s *cuda.Stream, f func() error) error {
	l.group = &group{sends: map[int]cuda.Pointer{}}
	err := f()
	g := l.group
	l.group = nil
	if err != nil {
		return err
	}
	return l.collective(s, call{sends: g.sends}, func(all []call) error {
		for _, receive := range g.receives {
			if err := receive(all); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *shared) send(s *cuda.Stream, from cuda.Pointer, bytes, peer int) error {
	if l.group != nil {
		l.group.sends[peer] = from
		return nil
	}
	sent, err := l.marked(s)
	if err != nil {
		return err
	}
	x := letter{from, bytes, sent, make(chan *cuda.Event, 1)}
	l.pending = append(l.pending, x)
	l.hub.mailbox(l.me, peer) <- x
	return nil
}

func (l *shared) receive(s *cuda.Stream, to cuda.Pointer, bytes, peer int) error {
	if l.group != nil {
		l.group.receives = append(l.group.receives, func(all []call) error {
			return move(s, to, all[peer].sends[l.me], bytes)
		})
		return nil
	}
	var x letter
	select {
	case x = <-l.hub.mailbox(peer, l.me):
	case <-l.device.Failed:
		return ErrPeerFailed
	}
	if x.bytes != bytes {
		return fmt.Errorf("gpu: received a message of %d bytes, expected %d", x.bytes, bytes)
	}
	if err := s.Wait(x.sent); err != nil {
		return err
	}
	if err := move(s, to, x.from, bytes); err != nil {
		return err
	}
	taken, err := l.marked(s)
	x.taken <- taken
	return err
}

// settle makes later work on a stream wait until the n oldest pending messages have been received.
func (l *shared) settle(s *cuda.Stream, n int) error {
	for _, x := range l.pending[:n] {
		select {
		case e := <-x.taken:
			if err := s.Wait(e); err != nil {
				return err
			}
		case <-l.device.Failed:
			return ErrPeerFailed
		}
	}
	l.pending = l.pending[n:]
	return nil
}

// members returns the device address of the list of the members' operands.
func (l *shared) members(all []call, address func(*call) cuda.Pointer) cuda.Pointer {
	var bytes []byte
	for i := range all {
		bytes = binary.NativeEndian.AppendUint64(bytes, uint64(address(&all[i])))
	}
	return l.device.Constant("members "+string(bytes), func() []byte { return bytes })
}

// move copies within the device.
func move(s *cuda.Stream, to, from cuda.Pointer, bytes int) error {
	return s.Copy(cuda.Memory{Pointer: to, Bytes: int64(bytes)}, cuda.Memory{Pointer: from, Bytes: int64(bytes)})
}

// suffixes maps NCCL's types to the suffixes of kernel names.
var suffixes = map[cuda.Type]string{cuda.Int32: "i32", cuda.Float16: "f16", cuda.Float32: "f32", cuda.Float64: "f64",
	cuda.BFloat16: "bf16"}
