package meet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// Hello is what a process says of itself. Ranks are those of the program, of which it runs Count from First on.
type Hello struct {
	Process, Processes  int
	Ranks, First, Count int
	Host                string
	Program             string // digest
	Run                 string // what tells a launch from others
	Settings            string // with which it runs, as far as all have the same
}

// ranks names them.
func (h *Hello) ranks() string {
	switch h.Count {
	case 1:
		return fmt.Sprintf("rank %d", h.First)
	default:
		return fmt.Sprintf("ranks %d to %d", h.First, h.First+h.Count-1)
	}
}

// who names a process for people.
func (h *Hello) who() string { return h.ranks() + " on " + h.Host }

// differs says in what a process differs that cannot run with another; "" if it may.
func (h *Hello) differs(from *Hello) string {
	for _, d := range []struct{ what, here, there string }{
		{"is another program: its digest is %s, and here it is %s", h.Program, from.Program},
		{"is compiled for %s ranks, and here there are %s", fmt.Sprint(h.Ranks), fmt.Sprint(from.Ranks)},
		{"is of a launch of %s processes, and here there are %s", fmt.Sprint(h.Processes), fmt.Sprint(from.Processes)},
		{"is of another launch, %q, and here it is %q", h.Run, from.Run},
		{"was started with other settings: %s, and here %s", h.Settings, from.Settings},
	} {
		if d.here != d.there {
			return fmt.Sprintf("the process of "+h.who()+" "+d.what, d.here, d.there)
		}
	}
	return ""
}

// Refused is the error of processes that cannot run together.
type Refused struct{ Text string }

func (e *Refused) Error() string { return e.Text }

// Join meets the other processes of me's launch at an address, within a time. taken says who else may listen there; it may be "".
func Join(ctx context.Context, addr, taken string, me Hello, within time.Duration) (*Peers, error) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	p := &Peers{me: me, addr: addr, done: make(chan struct{}), stop: make(chan struct{})}
	begin := p.call
	if me.Process == 0 {
		begin = p.listen
	}
	if err := begin(ctx, within); err != nil {
		p.shut()
		return nil, taught(err, taken, addr)
	}
	for _, w := range p.wires {
		_ = w.SetDeadline(time.Time{})
		p.busy.Go(func() { p.hear(w) })
		p.busy.Go(func() { p.remind(w) })
	}
	return p, nil
}

// taught is an error with what may be done about it.
func taught(err error, taken, addr string) error {
	why := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = "another process has the port; choose one that is free with MASTER_PORT or --master-port, the same for all"
		if taken != "" {
			why += " (MASTER_PORT itself has " + taken + ")"
		}
	case errors.Is(err, errStranger) && taken == "":
		why = "choose another port with MASTER_PORT or --master-port, the same for all"
	}
	if why == "" {
		return fmt.Errorf("joining at %s: %w", addr, err)
	}
	return fmt.Errorf("joining at %s: %w: %s", addr, err, why)
}

// listen lets all others join.
func (p *Peers) listen(ctx context.Context, within time.Duration) error {
	_, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	p.all = make([]Hello, p.me.Processes)
	p.all[0] = p.me
	p.wires = make([]*wire, 0, p.me.Processes-1)
	came := make(chan *wire)
	go accept(ctx, l, came)
	for len(p.wires) < p.me.Processes-1 {
		w := <-came
		if w == nil {
			return p.missing(ctx, within)
		}
		if why := p.admit(w); why != "" {
			p.refuse(w, why)
			return &Refused{why}
		}
	}
	return p.meet()
}

// accept says who has called and said who it is; nil at the end.
func accept(ctx context.Context, l net.Listener, came chan<- *wire) {
	for {
		c, err := l.Accept()
		if err != nil {
			select {
			case came <- nil:
			case <-time.After(time.Second): // nobody waits any more
			}
			return
		}
		go func() {
			w := newWire(c)
			_ = w.SetDeadline(time.Now().Add(10 * time.Second))
			err := w.greet()
			var k kind
			var b []byte
			if err == nil {
				k, b, err = w.read(helloLimit)
			}
			if err != nil || k != hello || json.Unmarshal(b, &w.peer) != nil {
				c.Close() // a stranger
				return
			}
			select {
			case came <- w:
			case <-ctx.Done():
				c.Close()
			}
		}()
	}
}

// admit takes a process up, or says why it may not.
func (p *Peers) admit(w *wire) string {
	h := &w.peer
	if why := h.differs(&p.me); why != "" {
		return why
	}
	if h.Process < 1 || h.Process >= len(p.all) {
		return fmt.Sprintf("the process of %s says that it is process %d of %d", h.who(), h.Process, len(p.all))
	}
	for i := range p.all {
		o := &p.all[i]
		if o.Count > 0 && (h.Process == o.Process || h.First < o.First+o.Count && o.First < h.First+h.Count) {
			return fmt.Sprintf("two processes have %s: process %d on %s and process %d on %s", h.ranks(), o.Process, o.Host, h.Process, h.Host)
		}
	}
	p.all[h.Process] = *h
	p.wires = append(p.wires, w)
	return ""
}

// refuse tells a process, and those that have joined, why there will be no run.
func (p *Peers) refuse(w *wire, why string) {
	_ = w.tell(fault, failure{0, why})
	w.Close()
	for _, o := range p.wires {
		_ = o.tell(fault, failure{0, why})
	}
}

// missing names who has not come.
func (p *Peers) missing(ctx context.Context, within time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	var absent []string
	each := p.me.Ranks / p.me.Processes
	for i := range p.all {
		if h := p.all[i]; h.Count == 0 {
			h.First, h.Count = i*each, each
			absent = append(absent, h.ranks())
		}
	}
	why := fmt.Sprintf("%d of %d processes have not come within %v: those of %s", len(absent), len(p.all), within, strings.Join(absent, ", "))
	for _, o := range p.wires {
		_ = o.tell(fault, failure{0, why})
	}
	return errors.New(why)
}

// meet tells all of all.
func (p *Peers) meet() error {
	for _, w := range p.wires {
		if err := w.tell(known, p.all); err != nil {
			return fmt.Errorf("the process of %s: %w", w.peer.who(), err)
		}
	}
	ordered := make([]*wire, len(p.wires))
	for _, w := range p.wires {
		ordered[w.peer.Process-1] = w
	}
	p.wires = ordered
	return nil
}

// call joins the lead, which may not be there yet.
func (p *Peers) call(ctx context.Context, within time.Duration) error {
	var err error
	for {
		var w *wire
		if w, err = p.dial(ctx); err == nil {
			p.wires = []*wire{w}
			return p.welcomed(ctx, w, within)
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return fmt.Errorf("process 0 has not come within %v: %w", within, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// dial calls once.
func (p *Peers) dial(ctx context.Context) (*wire, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return nil, err
	}
	w := newWire(c)
	_ = w.SetDeadline(time.Now().Add(10 * time.Second))
	if err := w.greet(); err != nil {
		c.Close()
		return nil, err
	}
	return w, nil
}

// welcomed says who this is and waits until all have come.
func (p *Peers) welcomed(ctx context.Context, w *wire, within time.Duration) error {
	end, _ := ctx.Deadline()
	_ = w.SetDeadline(end.Add(quiet)) // the lead gives up first, and says why
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			w.Close()
		}
	})()
	if err := w.tell(hello, p.me); err != nil {
		return err
	}
	k, b, err := w.read(frameLimit)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("process 0 ended before all had come: %w", err)
	case k == fault:
		var f failure
		_ = json.Unmarshal(b, &f)
		return &Refused{f.Text}
	case k != known:
		return errStranger
	}
	if err := json.Unmarshal(b, &p.all); err != nil || len(p.all) != p.me.Processes {
		return errStranger
	}
	w.peer = p.all[0]
	return nil
}
