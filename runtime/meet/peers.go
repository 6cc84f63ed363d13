package meet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Peers are the processes of a launch that have met, as one of them has them. One goroutine calls Gather, Spread and
// Exchange; the others are for any.
type Peers struct {
	me    Hello
	at    Place
	all   []Hello // by process
	wires []*wire // the lead's to each of the others, in order; of the others the one to the lead

	waits  atomic.Pointer[wire] // whose next message is waited for
	busy   sync.WaitGroup
	stop   chan struct{} // closed when nothing more is said
	mutex  sync.Mutex
	done   chan struct{} // closed by the first failure
	cause  error
	closed bool
}

// All are the processes in order.
func (p *Peers) All() []Hello { return p.all }

// Lead tells whether this is process 0.
func (p *Peers) Lead() bool { return p.me.Process == 0 }

// Done is closed when a process has failed, and Err is then why.
func (p *Peers) Done() <-chan struct{} { return p.done }

// Err is nil while no process has failed.
func (p *Peers) Err() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.cause
}

// Gather brings each process's message to the lead, where they are returned in order; elsewhere there is nothing.
func (p *Peers) Gather(own []byte) ([][]byte, error) {
	if !p.Lead() {
		return nil, p.send(p.wires[0], own)
	}
	all := [][]byte{own}
	for _, w := range p.wires {
		b, err := p.next(w)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// Broadcast brings the lead's message to all.
func (p *Peers) Broadcast(b []byte) ([]byte, error) {
	if !p.Lead() {
		return p.next(p.wires[0])
	}
	for _, w := range p.wires {
		if err := p.send(w, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Exchange brings each process's message to all, in order.
func (p *Peers) Exchange(own []byte) ([][]byte, error) {
	all, err := p.Gather(own)
	if err != nil {
		return nil, err
	}
	joined, err := p.Broadcast(joinMessages(all))
	if err != nil {
		return nil, err
	}
	all, ok := partMessages(joined, p.me.Processes)
	if !ok {
		return nil, errors.New("meet: the lead sent what is no exchange") // our bug, or another's message
	}
	return all, nil
}

// send is write of a message.
func (p *Peers) send(w *wire, b []byte) error {
	if err := p.Err(); err != nil {
		return err
	}
	if err := w.write(said, b); err != nil {
		return p.lost(w, err)
	}
	return nil
}

// next is the next message of a wire.
func (p *Peers) next(w *wire) ([]byte, error) {
	select {
	case b := <-w.inbox:
		return b, nil
	default:
	}
	p.waits.Store(w)
	defer p.waits.Store(nil)
	select {
	case b := <-w.inbox:
		return b, nil
	case <-p.done:
		return nil, p.Err()
	}
}

// WaitingFor names the process whose message a call waits for now, "" for none.
func (p *Peers) WaitingFor() string {
	if w := p.waits.Load(); w != nil {
		return w.peer.who()
	}
	return ""
}

// lost fails for a wire that broke, and waits a moment for the reason, which may still be on its way.
func (p *Peers) lost(w *wire, err error) error {
	select {
	case <-p.done:
	case <-time.After(time.Second):
		p.fail(fmt.Errorf("the process of %s is lost: %w", w.peer.who(), err), 0)
	}
	return p.Err()
}

// hear takes a wire's frames until the end.
func (p *Peers) hear(w *wire) {
	_ = w.SetReadDeadline(time.Now().Add(quiet))
	if err := <-w.first; err != nil {
		p.fail(fmt.Errorf("the process of %s %w", w.peer.who(), silence(err)), w.peer.Process)
		return
	}
	for {
		_ = w.SetReadDeadline(time.Now().Add(quiet))
		k, b, err := w.read(frameLimit)
		switch {
		case err != nil:
			p.fail(fmt.Errorf("the process of %s %w", w.peer.who(), silence(err)), w.peer.Process)
			return
		case k == ended:
			return
		case k == fault:
			p.fail(errors.New(p.named(readFailure(b))), w.peer.Process)
			return
		case k == said:
			select {
			case w.inbox <- b:
			case <-p.done:
				return
			case <-p.stop:
				return
			}
		case k != alive:
			p.fail(fmt.Errorf("the process of %s sends what belongs to joining", w.peer.who()), w.peer.Process)
			return
		}
	}
}

// named is a failure with whose it is.
func (p *Peers) named(f failure) string {
	if f.Process < 0 || f.Process >= len(p.all) {
		return f.Text
	}
	return fmt.Sprintf("the process of %s has failed: %s", p.all[f.Process].who(), f.Text)
}

// silence is how a connection ended.
func silence(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("has not been heard of for %v", quiet)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return errors.New("has ended without a word; its own output may say why")
	}
	return fmt.Errorf("is lost: %w", err)
}

// remind says that this process lives.
func (p *Peers) remind(w *wire) {
	tick := time.NewTicker(remind)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-p.done:
			return
		case <-tick.C:
			if w.write(alive, nil) != nil {
				return // hear finds out why
			}
		}
	}
}

// Fail tells all other processes that this one has failed. The first failure stays.
func (p *Peers) Fail(err error) { p.failAs(failure{Process: p.me.Process, Text: err.Error()}, err, -1) }

// fail is of what was met on the wire to a process: the lead tells the others.
func (p *Peers) fail(err error, from int) {
	p.failAs(failure{Process: -1, Text: err.Error()}, err, from)
}

func (p *Peers) failAs(f failure, err error, from int) {
	p.mutex.Lock()
	first := p.cause == nil && !p.closed
	if first {
		p.cause = err
	}
	p.mutex.Unlock()
	if !first {
		return
	}
	for _, w := range p.wires {
		if w.peer.Process != from {
			_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
			_ = w.tell(fault, f)
		}
	}
	close(p.done)
}

// Close ends the connections. After a run without failure all processes call it.
func (p *Peers) Close() {
	p.mutex.Lock()
	good := p.cause == nil
	p.closed = good
	p.mutex.Unlock()
	if good {
		for _, w := range p.wires {
			_ = w.write(ended, nil)
		}
	}
	close(p.stop)
	if good { // so that nobody's end is a lost connection to another
		for _, w := range p.wires {
			_ = w.SetReadDeadline(time.Now().Add(10 * time.Second))
		}
		p.busy.Wait()
	}
	p.shut()
	p.busy.Wait()
}

func (p *Peers) shut() {
	for _, w := range p.wires {
		w.Close()
	}
}
