package comm

import (
	"fmt"
	"time"
)

// Pipe carries messages from one rank to another, in order. The receiver copies out of the sender's memory, so that a
// message stays there until it is taken.
type Pipe struct {
	world    *World
	name     string
	from, to int
	messages chan []byte
	taken    chan struct{}
	late     *time.Timer // of the receiver
}

// Pipe is the pipe of that name between two ranks, the same for both. At most capacity messages wait in it.
func (w *World) Pipe(name string, from, to, capacity int) *Pipe {
	key := fmt.Sprint(name, " ", from, " ", to)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipes == nil {
		w.pipes = map[string]*Pipe{}
	}
	p := w.pipes[key]
	if p == nil {
		p = &Pipe{world: w, name: name, from: from, to: to, messages: make(chan []byte, capacity),
			taken: make(chan struct{}, capacity), late: time.NewTimer(time.Hour)}
		p.late.Stop()
		w.pipes[key] = p
	}
	return p
}

// Send hands data over. It may be changed after the receiver has taken it.
func (p *Pipe) Send(data []byte) error {
	p.note(p.from, "send", len(data))
	select {
	case p.messages <- data:
		return nil
	case <-p.world.done:
		return &Lost{Rank: p.from, Group: p.name, Op: "send", Cause: p.world.Err()}
	}
}

// Receive fills dst with the next message.
func (p *Pipe) Receive(dst []byte) error {
	p.note(p.to, "receive", len(dst))
	var data []byte
	select {
	case data = <-p.messages:
	default:
		if err := p.await(&data); err != nil {
			return err
		}
	}
	if len(data) != len(dst) {
		err := &Mismatch{Group: p.name, Rank: p.to, Peer: p.from, Here: fmt.Sprintf("receive of %d bytes", len(dst)),
			There: fmt.Sprintf("send of %d bytes", len(data))}
		p.world.Fail(err)
		return err
	}
	copy(dst, data)
	select {
	case p.taken <- struct{}{}:
	default: // the sender does not ask
	}
	return nil
}

// Name is the pipe's.
func (p *Pipe) Name() string { return p.name }

// note tells who watches of a message between ranks.
func (p *Pipe) note(rank int, op string, bytes int) {
	if watch := p.world.Watch; watch != nil && p.from != p.to {
		watch(Call{Rank: rank, Op: op, Group: p.name, Ranks: 2, Bytes: bytes})
	}
}

func (p *Pipe) await(data *[]byte) error {
	p.late.Reset(p.world.timeout)
	defer p.late.Stop()
	select {
	case *data = <-p.messages:
		return nil
	case <-p.world.done:
		return &Lost{Rank: p.to, Group: p.name, Op: "receive", Cause: p.world.Err()}
	case <-p.late.C:
		err := &Timeout{Rank: p.to, Group: p.name, Op: "receive", After: p.world.timeout, Absent: []int{p.from}}
		p.world.Fail(err)
		return err
	}
}

// WaitSent returns when one more message has been taken. A sender that reuses memory asks once for each message.
func (p *Pipe) WaitSent() error {
	select {
	case <-p.taken:
		return nil
	case <-p.world.done:
		return &Lost{Rank: p.from, Group: p.name, Op: "send", Cause: p.world.Err()}
	}
}

// Ends is rank's end of the group of the first and the last rank along an atom, where rank is one of them.
func (w *World) Ends(rank int, atom string, stream Stream) (*Group, error) {
	ranks, me, err := w.mesh.Members(rank, []string{atom})
	if err != nil {
		return nil, err
	}
	ends := []int{ranks[0], ranks[len(ranks)-1]}
	if me > 0 {
		me = 1
	}
	return w.join("ends of "+atom, ends, me, stream), nil
}
