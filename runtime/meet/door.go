package meet

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// door is where callers come in. Those that have not said who they are are few: when too many are there, the one that
// has waited longest is shown out. A process of the launch says who it is at once, and calls again when it was shown
// out.
type door struct {
	ctx       context.Context
	say       func(string, ...any)
	listeners []net.Listener
	came      chan *wire // callers that have said who they are
	gone      chan *wire // of those, processes that were taken and are gone
	failed    chan error
	over      chan struct{}
	busy      sync.WaitGroup

	own     bool            // a caller that knew the program was refused
	reports map[string]bool // why callers were
	whys    []string        // the first of them

	mutex   sync.Mutex
	pending []net.Conn // callers that have not said who they are, the first to come first
	most    int        // of them
}

// mostStrangers is how many callers may be pending besides one for each process.
const mostStrangers = 64

// greeting is how long a caller has to say who it is.
const greeting = 10 * time.Second

func newDoor(ctx context.Context, p *Peers, listeners []net.Listener) *door {
	d := &door{ctx: ctx, say: p.at.say, listeners: listeners, came: make(chan *wire), gone: make(chan *wire),
		failed: make(chan error, len(listeners)),
		over:   make(chan struct{}), reports: map[string]bool{}, most: mostStrangers + p.me.Processes}
	if limit := descriptorLimit(); limit > 0 {
		d.most = max(1, min(d.most, (limit-descriptorsOpen()-p.me.Processes)/2))
	}
	for _, l := range listeners {
		d.busy.Go(func() { d.accept(l) })
	}
	return d
}

// close lets nobody in any more.
func (d *door) close() {
	close(d.over)
	for _, l := range d.listeners {
		l.Close()
	}
	for d.showOut() {
	}
	d.busy.Wait()
}

// accept lets callers in, until the door is closed.
func (d *door) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		select {
		case <-d.over:
			if err == nil {
				c.Close()
			}
			return
		default:
		}
		if none := outOf(err); none != nil && d.showOut() { // a stranger's descriptor serves a process of the launch
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
		full := len(d.pending) > d.most
		d.mutex.Unlock()
		if full {
			d.showOut()
		}
		d.busy.Go(func() { d.ask(c) })
	}
}

// showOut ends the connection that has been pending longest; false for none.
func (d *door) showOut() bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.pending) == 0 {
		return false
	}
	d.pending[0].Close()
	d.pending = slices.Delete(d.pending, 0, 1)
	return true
}

// ask hears who a caller is.
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
	case d.came <- w:
	case <-d.over:
		c.Close()
	}
}

// left reports a process that has come and gone.
func (d *door) left(w *wire) {
	select {
	case d.gone <- w:
	case <-d.over:
	}
}

// mostReports is how many different refusals are reported, and mostWhys how many the last message names.
const (
	mostReports = 16
	mostWhys    = 3
)

// refused reports why a caller was, each reason once.
func (d *door) refused(w *wire, why string, own bool) {
	d.own = d.own || own
	if d.reports[why] || len(d.reports) == mostReports {
		return
	}
	d.reports[why] = true
	d.say("process 0 has refused a caller from %s: %s", w.RemoteAddr(), why)
	if len(d.whys) < mostWhys {
		d.whys = append(d.whys, why)
	}
}
