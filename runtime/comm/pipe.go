package comm

import (
	"fmt"
	"time"

	"github.com/planc-dev/planc/runtime/timeline"
)

// Pipe carries messages from one rank to another, in order. The receiver copies from the sender's memory, so a message
// must stay there until it is received.
type Pipe struct {
	world    *World
	name     string
	from, to int
	messages chan []byte
	taken    chan struct{}
	late     *time.Timer // timeout of the receiver
}

// Pipe returns the pipe of a name between two ranks, the same for both. It holds at most capacity waiting messages.
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

// Send sends data. The sender may change it after the receiver has received it.
func (p *Pipe) Send(data []byte) error {
	p.report(p.from, "send", len(data))
	select {
	case p.messages <- data:
		return nil
	case <-p.world.done:
		return &Lost{Rank: p.from, Group: p.name, Op: "send", Cause: p.world.Err()}
	}
}

// Receive fills dst with the next message.
func (p *Pipe) Receive(dst []byte) error {
	p.report(p.to, "receive", len(dst))
	track := p.world.Track(p.to, Main)
	mark := track.Begin(timeline.PPBubble)
	p.describe(track, "receive", len(dst))
	var data []byte
	select {
	case data = <-p.messages:
	default:
		if err := p.await(&data); err != nil {
			return err
		}
	}
	track.Split(mark, timeline.PPComm)
	if len(data) != len(dst) {
		err := &Mismatch{Group: p.name, Rank: p.to, Peer: p.from,
			RankCall: fmt.Sprintf("receive of %d bytes", len(dst)),
			PeerCall: fmt.Sprintf("send of %d bytes", len(data))}
		p.world.Fail(err)
		return err
	}
	copy(dst, data)
	track.End(mark)
	select {
	case p.taken <- struct{}{}:
	default: // the sender does not wait for it
	}
	return nil
}

// Name returns the name of the pipe.
func (p *Pipe) Name() string { return p.name }

// describe describes the current span of a message.
func (p *Pipe) describe(t *timeline.Track, kind string, bytes int) {
	if s := t.Span(); s != nil {
		s.Kind, s.Object, s.Ranks, s.Bytes = kind, p.name, 2, bytes
	}
}

// report calls Watch with a message between ranks.
func (p *Pipe) report(rank int, op string, bytes int) {
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

// WaitSent waits until one more message has been received. A sender that reuses memory calls it once per message.
func (p *Pipe) WaitSent() error {
	track := p.world.Track(p.from, Main)
	mark := track.Begin(timeline.PPBubble)
	defer track.End(mark)
	p.describe(track, "wait until received:", 0)
	select {
	case <-p.taken:
		return nil
	case <-p.world.done:
		return &Lost{Rank: p.from, Group: p.name, Op: "send", Cause: p.world.Err()}
	}
}

// FirstLast returns rank's end of the group of the first and the last rank along an atom. rank must be one of them.
func (w *World) FirstLast(rank int, atom string, stream Stream) (*Group, error) {
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
