package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Place is where the processes of a launch meet.
type Place struct {
	Addr  string       // host and port of process 0
	Taken string       // who else may listen there; it may be ""
	Wide  bool         // "localhost" in Addr is what process 0 alone was given, and others call from other machines
	Say   func(string) // is told how the joining goes; it may be nil
}

// say reports how the joining goes.
func (a *Place) say(format string, args ...any) {
	if a.Say != nil {
		a.Say(fmt.Sprintf(format, args...))
	}
}

// Refused is the error of processes that cannot run together.
type Refused struct{ Text string }

func (e *Refused) Error() string { return e.Text }

// sayEvery is how often a process that waits reports what for.
var sayEvery = 10 * time.Second

// lastWord is how long after the time of joining a process waits for what process 0 then says.
var lastWord = 10 * time.Second

// Join meets the other processes of me's launch, within a time.
func Join(ctx context.Context, at Place, me Hello, within time.Duration) (*Peers, error) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	p := &Peers{me: me, at: at, done: make(chan struct{}), stop: make(chan struct{})}
	begin := p.call
	if me.Process == 0 {
		begin = p.listen
	}
	if err := begin(ctx, within); err != nil {
		p.shut()
		return nil, taught(err, &at)
	}
	for _, w := range p.wires {
		_ = w.SetDeadline(time.Time{})
		p.busy.Go(func() { p.hear(w) })
		p.busy.Go(func() { p.remind(w) })
	}
	return p, nil
}

// noAddress is what may be done if process 0 is to listen at an address that its machine does not have.
const noAddress = "this machine has no such address; process 0 listens at the master's address: start it on that " +
	"machine, or give process 0 alone one of " +
	"this machine's addresses, or 0.0.0.0 for all of them, as behind NAT or a Kubernetes Service " +
	"(--master-addr 0.0.0.0)"

// taught is an error with what may be done about it.
func taught(err error, at *Place) error {
	why := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = "another process has the port; choose one that is free with MASTER_PORT or --master-port, the " +
			"same for all"
		if at.Taken != "" {
			why += " (MASTER_PORT itself has " + at.Taken + ")"
		}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		why = noAddress
	case errors.Is(err, errStranger) && at.Taken == "":
		why = "choose another port with MASTER_PORT or --master-port, the same for all"
	}
	if why == "" {
		return fmt.Errorf("joining at %s: %w", at.Addr, err)
	}
	return fmt.Errorf("joining at %s: %w: %s", at.Addr, err, why)
}

// call joins the lead, which may not be there yet.
func (p *Peers) call(ctx context.Context, within time.Duration) error {
	var next time.Time // when the same is reported again
	said := false
	for {
		w, err := p.dial(ctx)
		if err == nil {
			if said {
				p.at.say("process %d has reached process 0 at %s", p.me.Process, p.at.Addr)
			}
			var taken bool
			taken, err = p.welcomed(ctx, w, within)
			if taken || err == nil {
				return err
			}
		}
		if none := outOf(err); none != nil {
			return none
		}
		if ctx.Err() == nil && time.Now().After(next) {
			p.at.say("process %d cannot reach process 0 at %s yet: %s; it goes on trying (--join-timeout %v)",
				p.me.Process, p.at.Addr, unreached(err), within)
			next, said = time.Now().Add(sayEvery), true
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

// unreached says why process 0 was not reached.
func unreached(err error) string {
	if none := (*net.DNSError)(nil); errors.As(err, &none) {
		return fmt.Sprintf("%s cannot be resolved (%s)", quoted(none.Name), quoted(none.Err))
	}
	return quoted(err.Error())
}

// dial calls once.
func (p *Peers) dial(ctx context.Context) (*wire, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", p.at.Addr)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	var n nonces
	n.caller, n.lead, err = greet(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return newWire(c, n), nil
}

// welcomed says who this is and waits until all have come. taken is whether the lead has heard it: else it may be
// called again.
func (p *Peers) welcomed(ctx context.Context, w *wire, within time.Duration) (taken bool, err error) {
	p.wires = []*wire{w}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	end, _ := ctx.Deadline()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			w.Close()
		}
	})()
	me := p.me
	me.Program = w.proof(me.Program)
	if err := w.tell(hello, me); err != nil {
		return false, err
	}
	for {
		wait := time.Now().Add(quiet)
		if last := end.Add(lastWord); wait.After(last) {
			wait = last // the lead gives up first, and says why
		}
		_ = w.SetDeadline(wait)
		k, b, err := w.read(helloLimit + knownLimit*uint64(p.me.Processes))
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return true, context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			return true, fmt.Errorf("not all processes have come within %v: process 0 waits for others", within)
		case err != nil:
			return taken, fmt.Errorf("before all had come, process 0 %w", silence(err))
		case k == alive:
			taken = true
		case k == fault:
			f := readFailure(b)
			if f.Text == others {
				f.Text += " (here its digest is " + p.me.Program + ")"
			}
			if f.Refused {
				return true, &Refused{f.Text}
			}
			return true, errors.New(f.Text)
		case k == known:
			p.all, err = readKnown(b, &p.me)
			if err != nil {
				return true, err
			}
			w.peer = p.all[0]
			w.first <- nil
			return true, nil
		default:
			return true, errStranger
		}
	}
}
