package meet

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// door accepts callers. The number of callers that have not identified themselves is bounded: if there are too many,
// the one that has waited longest is disconnected. A process of the launch identifies itself at once, and connects
// again when it was disconnected.
type door struct {
	ctx       context.Context
	say       func(string, ...any)
	listeners []net.Listener
	arrived   chan *wire // callers that have identified themselves
	departed  chan *wire // accepted processes that have disconnected
	failed    chan error
	closed    chan struct{}
	busy      sync.WaitGroup

	own     bool            // a caller that knew the program's digest was refused
	reports map[string]bool // reported reasons of refusals
	reasons []string        // the first reasons

	mutex      sync.Mutex
	pending    []net.Conn // callers that have not identified themselves, the oldest first
	maxPending int        // maximum number of pending callers
}

// maxStrangers is how many callers may be pending in addition to one per process.
const maxStrangers = 64

// greeting is how long a caller has to identify itself.
const greeting = 10 * time.Second

func newDoor(ctx context.Context, p *Peers, listeners []net.Listener) *door {
	d := &door{ctx: ctx, say: p.at.say, listeners: listeners, arrived: make(chan *wire), departed: make(chan *wire),
		failed: make(chan error, len(listeners)),
		closed: make(chan struct{}), reports: map[string]bool{}, maxPending: maxStrangers + p.me.Processes}
	if limit := descriptorLimit(); limit > 0 {
		d.maxPending = max(1, min(d.maxPending, (limit-descriptorsOpen()-p.me.Processes)/2))
	}
	for _, l := range listeners {
		d.busy.Go(func() { d.accept(l) })
	}
	return d
}

// close stops accepting callers and disconnects the pending ones.
func (d *door) close() {
	close(d.closed)
	for _, l := range d.listeners {
		l.Close()
	}
	for d.evictOldest() {
	}
	d.busy.Wait()
}

// accept accepts callers until the door is closed.
func (d *door) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		select {
		case <-d.closed:
			if err == nil {
				c.Close()
			}
			return
		default:
		}
		// frees a descriptor for a process of the launch
		if none := descriptorError(err); none != nil && d.evictOldest() {
			time.Sleep(10 * time.Millisecond)
			continue
		} else if none != nil {
			err = none
		}
		if err != nil {
			d.failed <- err
			return
		}
		d.mutex.Lock()
		d.pending = append(d.pending, c)
		full := len(d.pending) > d.maxPending
		d.mutex.Unlock()
		if full {
			d.evictOldest()
		}
		d.busy.Go(func() { d.ask(c) })
	}
}

// evictOldest disconnects the caller that has been pending longest; false if there is none.
func (d *door) evictOldest() bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.pending) == 0 {
		return false
	}
	d.pending[0].Close()
	d.pending = slices.Delete(d.pending, 0, 1)
	return true
}

// ask reads a caller's identification.
func (d *door) ask(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(greeting))
	var n nonces
	var err error
	n.lead, n.caller, err = greet(c)
	var h Hello
	if err == nil {
		h, err = readHello(c)
	}
	d.mutex.Lock()
	if i := slices.Index(d.pending, c); i >= 0 {
		d.pending = slices.Delete(d.pending, i, i+1)
	} else if err == nil {
		err = net.ErrClosed
	}
	d.mutex.Unlock()
	if err != nil {
		c.Close() // a stranger
		return
	}
	w := newWire(c, n)
	w.peer = h
	select {
	case d.arrived <- w:
	case <-d.closed:
		c.Close()
	}
}

// reportDeparture reports a process that has joined and disconnected.
func (d *door) reportDeparture(w *wire) {
	select {
	case d.departed <- w:
	case <-d.closed:
	}
}

// maxReports is how many different refusals are reported, and maxReasons how many of them the final error names.
const (
	maxReports = 16
	maxReasons = 3
)

// refused reports why a caller was refused, each reason once.
func (d *door) refused(w *wire, why string, own bool) {
	d.own = d.own || own
	if d.reports[why] || len(d.reports) == maxReports {
		return
	}
	d.reports[why] = true
	d.say("process 0 has refused a caller from %s: %s", w.RemoteAddr(), why)
	if len(d.reasons) < maxReasons {
		d.reasons = append(d.reasons, why)
	}
}
