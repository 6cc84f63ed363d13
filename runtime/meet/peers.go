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

// Peers is one process's view of the connected processes of a launch. Gather, Broadcast and Exchange must be called by
// one goroutine, and GatherInBackground by one; the other methods may be called by any.
type Peers struct {
	me    Hello
	at    Place
	all   []Hello // indexed by process
	wires []*wire // the lead has one to each other process, in order; the others have one to the lead

	waitingFor atomic.Pointer[wire] // connection whose next message a call waits for
	busy       sync.WaitGroup
	stop       chan struct{} // closed when nothing more is sent
	mutex      sync.Mutex
	done       chan struct{} // closed by the first failure
	cause      error
	closed     bool
}

// All returns the processes in order.
func (p *Peers) All() []Hello { return p.all }

// Lead reports whether this is process 0.
func (p *Peers) Lead() bool { return p.me.Process == 0 }

// Done returns a channel that is closed when a process has failed. Err then returns the reason.
func (p *Peers) Done() <-chan struct{} { return p.done }

// Err returns the first failure; nil while no process has failed.
func (p *Peers) Err() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.cause
}

// Gather sends each process's message to the lead, where it returns them in order. In other processes it returns
// nothing.
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

// Broadcast sends the lead's message to all processes.
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

// Exchange sends each process's message to all, and returns them in order.
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
		return nil, errors.New("meet: the lead sent an invalid exchange") // a bug, or another program's message
	}
	return all, nil
}

// send sends a message.
func (p *Peers) send(w *wire, b []byte) error {
	if err := p.Err(); err != nil {
		return err
	}
	if err := w.write(payload, b); err != nil {
		return p.lost(w, err)
	}
	return nil
}

// next returns the next message from a wire.
func (p *Peers) next(w *wire) ([]byte, error) {
	select {
	case b := <-w.inbox:
		return b, nil
	default:
	}
	p.waitingFor.Store(w)
	defer p.waitingFor.Store(nil)
	select {
	case b := <-w.inbox:
		return b, nil
	case <-p.done:
		return nil, p.Err()
	}
}

// WaitingFor names the process whose message a call waits for; "" if there is none.
func (p *Peers) WaitingFor() string {
	if w := p.waitingFor.Load(); w != nil {
		return w.peer.who()
	}
	return ""
}

// lost fails because a wire broke. It first waits a moment for the other process's reason, which may still arrive.
func (p *Peers) lost(w *wire, err error) error {
	select {
	case <-p.done:
	case <-time.After(time.Second):
		p.fail(fmt.Errorf("the process of %s is lost: %w", w.peer.who(), err), 0)
	}
	return p.Err()
}

// receive receives a wire's frames until the end.
func (p *Peers) receive(w *wire) {
	_ = w.SetReadDeadline(time.Now().Add(quiet))
	if err := <-w.first; err != nil {
		p.fail(fmt.Errorf("the process of %s %w", w.peer.who(), connectionEnd(err)), w.peer.Process)
		return
	}
	for {
		_ = w.SetReadDeadline(time.Now().Add(quiet))
		k, b, err := w.read(frameLimit)
		switch {
		case err != nil:
			p.fail(fmt.Errorf("the process of %s %w", w.peer.who(), connectionEnd(err)), w.peer.Process)
			return
		case k == piece, k == lastPiece, k == credit:
			if !w.takeFrame(k, b) {
				p.fail(fmt.Errorf("the process of %s sent more than was asked for", w.peer.who()), w.peer.Process)
				return
			}
		case k == ended:
			return
		case k == fault:
			p.fail(errors.New(p.failureText(readFailure(b))), w.peer.Process)
			return
		case k == payload:
			select {
			case w.inbox <- b:
			case <-p.done:
				return
			case <-p.stop:
				return
			}
		case k != alive:
			p.fail(fmt.Errorf("the process of %s sent a frame that belongs to joining", w.peer.who()), w.peer.Process)
			return
		}
	}
}

// failureText returns a failure's text with the process that failed.
func (p *Peers) failureText(f failure) string {
	if f.Process < 0 || f.Process >= len(p.all) {
		return f.Text
	}
	return fmt.Sprintf("the process of %s has failed: %s", p.all[f.Process].who(), f.Text)
}

// connectionEnd describes how a connection ended.
func connectionEnd(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("has been silent for %v", quiet)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return errors.New("has ended without a message; its own output may say why")
	}
	return fmt.Errorf("is lost: %w", err)
}

// remind sends alive frames at intervals.
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
				return // receive reports the error
			}
		}
	}
}

// Fail notifies all other processes that this one has failed. Only the first failure counts.
func (p *Peers) Fail(err error) { p.failAs(failure{Process: p.me.Process, Text: err.Error()}, err, -1) }

// fail records a failure of the connection to a process. The lead notifies the others.
func (p *Peers) fail(err error, from int) {
	p.failAs(failure{Process: -1, Text: err.Error()}, err, from)
}

func (p *Peers) failAs(f failure, err error, from int) {
	p.mutex.Lock()
	first, closed := p.cause == nil && !p.closed, p.closed
	if first {
		p.cause = err
	}
	p.mutex.Unlock()
	if !first {
		if !closed { // the other call has not notified all: connections must not be closed before
			<-p.done
		}
		return
	}
	for _, w := range p.wires {
		if w.peer.Process != from {
			_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
			_ = w.sendValue(fault, f)
		}
	}
	close(p.done)
}

// Close closes the connections. After a run without failure all processes must call it.
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
	if good { // so that no process sees the end of another as a lost connection
		for _, w := range p.wires {
			_ = w.SetReadDeadline(time.Now().Add(10 * time.Second))
		}
		p.busy.Wait()
	} else {
		drain(p.wires)
	}
	p.shut()
	p.busy.Wait()
}

// drain waits a moment until the other processes have closed the connections, and drops what they send. If a
// connection is closed with data that was not read, TCP resets it, and the other process may lose the reason that was
// sent before (RFC 1122, 4.2.2.13).
func drain(wires []*wire) {
	var all sync.WaitGroup
	for _, w := range wires {
		if c, ok := w.Conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
			all.Go(func() { _, _ = io.Copy(io.Discard, w.Conn) })
		}
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
}

func (p *Peers) shut() {
	for _, w := range p.wires {
		w.Close()
	}
}
