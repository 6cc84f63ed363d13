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
	Addr          string       // host and port of process 0
	UsedBy        string       // what else may listen at that port; may be ""
	OtherMachines bool         // other machines connect, even if Addr is "localhost" for process 0
	Say           func(string) // reports the progress of joining; may be nil
}

// say reports the progress of joining.
func (a *Place) say(format string, args ...any) {
	if a.Say != nil {
		a.Say(fmt.Sprintf(format, args...))
	}
}

// Refused is the error for processes that cannot run together.
type Refused struct{ Text string }

func (e *Refused) Error() string { return e.Text }

// reportEvery is how often a waiting process reports what it waits for.
var reportEvery = 10 * time.Second

// finalWait is how long after the time limit of joining a process waits for process 0's final message.
var finalWait = 10 * time.Second

// Join connects to the other processes of me's launch, within a time limit.
func Join(ctx context.Context, at Place, me Hello, within time.Duration) (*Peers, error) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	p := &Peers{me: me, at: at, done: make(chan struct{}), stop: make(chan struct{})}
	begin := p.connect
	if me.Process == 0 {
		begin = (&leader{p}).listen
	}
	if err := begin(ctx, within); err != nil {
		p.shut()
		return nil, withAdvice(err, &at)
	}
	for _, w := range p.wires {
		_ = w.SetDeadline(time.Time{})
		p.busy.Go(func() { p.receive(w) })
		p.busy.Go(func() { p.remind(w) })
	}
	return p, nil
}

// noAddress is the advice if process 0 must listen at an address that its machine does not have.
const noAddress = "this machine has no such address; process 0 listens at the master's address: start it on that " +
	"machine, or give process 0 alone one of " +
	"this machine's addresses, or 0.0.0.0 for all of them, as behind NAT or a Kubernetes Service " +
	"(--master-addr 0.0.0.0)"

// withAdvice adds advice to an error.
func withAdvice(err error, at *Place) error {
	why := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = "another process uses the port; choose a free one with MASTER_PORT or --master-port, the " +
			"same for all processes"
		if at.UsedBy != "" {
			why += " (MASTER_PORT itself is used by " + at.UsedBy + ")"
		}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		why = noAddress
	case errors.Is(err, errUnknownPeer) && at.UsedBy == "":
		why = "choose another port with MASTER_PORT or --master-port, the same for all processes"
	}
	if why == "" {
		return fmt.Errorf("joining at %s: %w", at.Addr, err)
	}
	return fmt.Errorf("joining at %s: %w: %s", at.Addr, err, why)
}

// connect joins the lead, which may not be running yet.
func (p *Peers) connect(ctx context.Context, within time.Duration) error {
	var next time.Time // when to report again
	reported := false
	for {
		w, err := p.dial(ctx)
		if err == nil {
			if reported {
				p.at.say("process %d has reached process 0 at %s", p.me.Process, p.at.Addr)
			}
			var taken bool
			taken, err = p.waitForAll(ctx, w, within)
			if taken || err == nil {
				return err
			}
		}
		if none := descriptorError(err); none != nil {
			return none
		}
		if ctx.Err() == nil && time.Now().After(next) {
			p.at.say("process %d cannot reach process 0 at %s yet: %s; it goes on trying (--join-timeout %v)",
				p.me.Process, p.at.Addr, connectReason(err), within)
			next, reported = time.Now().Add(reportEvery), true
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return fmt.Errorf("cannot reach process 0 within %v: %w", within, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// connectReason says why process 0 could not be reached.
func connectReason(err error) string {
	if none := (*net.DNSError)(nil); errors.As(err, &none) {
		return fmt.Sprintf("%s cannot be resolved (%s)", quoted(none.Name), quoted(none.Err))
	}
	return quoted(err.Error())
}

// dial connects once.
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

// waitForAll identifies this process and waits until all have joined. taken reports whether the lead has accepted it;
// otherwise it may connect again.
func (p *Peers) waitForAll(ctx context.Context, w *wire, within time.Duration) (taken bool, err error) {
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
	if err := w.sendValue(hello, me); err != nil {
		return false, err
	}
	for {
		wait := time.Now().Add(quiet)
		if last := end.Add(finalWait); wait.After(last) {
			wait = last // the lead gives up first and sends the reason
		}
		_ = w.SetDeadline(wait)
		k, b, err := w.read(helloLimit + knownLimit*uint64(p.me.Processes))
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return true, context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			return true, fmt.Errorf("not all processes have joined within %v: process 0 is waiting for others", within)
		case err != nil:
			return taken, fmt.Errorf("before all processes had joined, process 0 %w", connectionEnd(err))
		case k == alive:
			taken = true
		case k == fault:
			f := readFailure(b)
			if f.Text == otherProgram {
				f.Text += " (here its digest is " + p.me.Program + ")"
			}
			if f.Refused {
				return true, &Refused{f.Text}
			}
			return true, errors.New(f.Text)
		case k == members:
			p.all, err = readKnown(b, &p.me)
			if err != nil {
				return true, err
			}
			w.peer = p.all[0]
			w.first <- nil
			return true, nil
		default:
			return true, errUnknownPeer
		}
	}
}
