package meet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// listen lets all others join.
func (p *Peers) listen(ctx context.Context, within time.Duration) error {
	if err := enough(p.me.Processes); err != nil {
		return err
	}
	d, err := p.open(ctx, within)
	if err != nil {
		return err
	}
	defer d.close()
	p.all = make([]Hello, p.me.Processes)
	p.all[0] = p.me.public()
	look, remind := time.NewTicker(sayEvery), time.NewTicker(remind)
	defer look.Stop()
	defer remind.Stop()
	for len(p.wires) < p.me.Processes-1 {
		select {
		case w := <-d.came:
			p.admit(d, w)
		case w := <-d.gone:
			p.at.say("the process of %s has ended before all had come; another may come in its place", w.peer.who())
			p.drop(w)
		case err := <-d.failed:
			return p.giveUp(err)
		case <-remind.C:
			p.reassure()
		case <-look.C:
			p.at.say("process 0 waits for %d of %d processes: those of %s", p.me.Processes-1-len(p.wires),
				p.me.Processes, p.absent())
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return p.giveUp(p.missing(d, within))
		}
	}
	return p.meet()
}

// admit takes a caller up, or refuses it and goes on.
func (p *Peers) admit(d *door, w *wire) {
	h := &w.peer
	here, there := p.me.refuses(h, w.proof(p.me.Program))
	if o := h.Process; here == "" && p.all[o].Count > 0 {
		here = fmt.Sprintf("two processes have %s: process %d on %s and another on %s", h.ranks(), o,
			p.all[o].Host, h.Host)
		there = here
	}
	if here != "" {
		d.refused(w, here, there != others)
		d.busy.Go(func() { // the caller may not read
			_ = w.SetDeadline(time.Now().Add(2 * time.Second))
			_ = w.tell(fault, failure{0, there, true})
			w.Close()
		})
		return
	}
	p.all[h.Process] = h.public()
	p.wires = append(p.wires, w)
	_ = w.SetDeadline(time.Time{})
	go func() {
		_, err := w.in.Peek(1)
		w.first <- err
		if err != nil {
			d.left(w)
		}
	}()
	p.reassure(w)
}

// reassure tells processes that wait, all if none is named, that the lead has them and lives.
func (p *Peers) reassure(wires ...*wire) {
	if len(wires) == 0 {
		wires = p.wires
	}
	for _, w := range wires {
		_ = w.SetWriteDeadline(time.Now().Add(time.Second))
		_ = w.write(alive, nil) // if it fails, the process is gone, which its reader finds
	}
}

// drop forgets a process that has come and gone.
func (p *Peers) drop(w *wire) {
	w.Close()
	if i := slices.Index(p.wires, w); i >= 0 {
		p.wires = slices.Delete(p.wires, i, i+1)
		p.all[w.peer.Process] = Hello{}
	}
}

// absent names the ranks of processes that have not come, not too many of them.
func (p *Peers) absent() string {
	const most = 8
	var names []string
	for i := range p.all {
		if p.all[i].Count == 0 {
			h := p.me.of(i)
			names = append(names, h.ranks())
		}
	}
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// missing is the error for processes that have not come.
func (p *Peers) missing(d *door, within time.Duration) error {
	text := fmt.Sprintf("%d of %d processes have not come within %v: those of %s", p.me.Processes-1-len(p.wires),
		p.me.Processes, within, p.absent())
	if len(d.whys) > 0 {
		text += "; refused: " + strings.Join(d.whys, "; ")
	}
	if d.own { // what is wrong with them is what is wrong with the launch
		return &Refused{text}
	}
	return errors.New(text)
}

// giveUp tells all that have come why there will be no run.
func (p *Peers) giveUp(err error) error {
	for _, w := range p.wires {
		_ = w.SetWriteDeadline(time.Now().Add(time.Second))
		refused := (*Refused)(nil)
		_ = w.tell(fault, failure{0, err.Error(), errors.As(err, &refused)})
	}
	return err
}

// meet tells all of all.
func (p *Peers) meet() error {
	b, err := json.Marshal(p.all)
	if err != nil {
		return err
	}
	slices.SortFunc(p.wires, func(a, b *wire) int { return a.peer.Process - b.peer.Process })
	for _, w := range p.wires {
		_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if err := w.write(known, b); err != nil {
			return p.giveUp(fmt.Errorf("the process of %s: %w", w.peer.who(), err))
		}
	}
	return nil
}

// lookupHost finds the addresses of a name.
var lookupHost = net.DefaultResolver.LookupHost

// listenAt are the addresses at which the lead listens, "" for all of the machine, and why if that is not what was
// given.
func (p *Peers) listenAt(ctx context.Context, host string) (all []string, why string, err error) {
	switch {
	case net.ParseIP(host) != nil || host == "":
		return []string{host}, "", nil
	case host == "localhost" && p.at.Wide:
		return []string{""}, "the launcher gives it localhost, and processes may run on other machines", nil
	}
	all, err = lookupHost(ctx, host)
	if err != nil || host == "localhost" {
		return all, "", err
	}
	if !slices.ContainsFunc(all, func(a string) bool { ip := net.ParseIP(a); return ip == nil || !ip.IsLoopback() }) {
		return []string{""}, quoted(host) + " is a loopback address on this machine, which others cannot reach; give " +
			"an IP address to listen on that alone", nil
	}
	return all, "", nil
}

// open listens where the launch meets. A name may not be known yet.
func (p *Peers) open(ctx context.Context, within time.Duration) (*door, error) {
	host, port, err := net.SplitHostPort(p.at.Addr)
	if err != nil {
		return nil, err
	}
	var next time.Time
	for {
		addresses, why, err := p.listenAt(ctx, host)
		var all []net.Listener
		if err == nil {
			all, err = listenOn(ctx, addresses, port)
		}
		if err == nil {
			if why != "" {
				p.at.say("process 0 listens on all addresses of this machine: %s", why)
			}
			return newDoor(ctx, p, all), nil
		}
		if none := outOf(err); none != nil {
			return nil, none
		}
		late := (*net.DNSError)(nil)
		if !errors.As(err, &late) && (net.ParseIP(host) != nil || !errors.Is(err, syscall.EADDRNOTAVAIL)) {
			return nil, err
		}
		if ctx.Err() == nil && time.Now().After(next) {
			reason := unreached(err)
			if errors.Is(err, syscall.EADDRNOTAVAIL) {
				reason += ": " + noAddress
			}
			p.at.say("process 0 cannot listen at %s yet: %s; it goes on trying (--join-timeout %v)", p.at.Addr,
				reason, within)
			next = time.Now().Add(sayEvery)
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, context.Cause(ctx)
			}
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// listenOn listens on those of some addresses that this machine has, or on none.
func listenOn(ctx context.Context, addresses []string, port string) (all []net.Listener, err error) {
	for _, a := range addresses {
		l, e := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(a, port))
		if e == nil {
			all = append(all, l)
		} else if err == nil || errors.Is(e, syscall.EADDRINUSE) {
			err = e
		}
	}
	if len(all) > 0 && !errors.Is(err, syscall.EADDRINUSE) {
		return all, nil
	}
	for _, l := range all {
		l.Close()
	}
	return nil, err
}
