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

// leader is process 0 until all other processes have joined.
type leader struct{ *Peers }

// listen waits until all other processes have joined.
func (p *leader) listen(ctx context.Context, within time.Duration) error {
	if err := checkDescriptors(p.me.Processes); err != nil {
		return err
	}
	d, err := p.open(ctx, within)
	if err != nil {
		return err
	}
	defer d.close()
	p.all = make([]Hello, p.me.Processes)
	p.all[0] = p.me.public()
	look, remind := time.NewTicker(reportEvery), time.NewTicker(remind)
	defer look.Stop()
	defer remind.Stop()
	for len(p.wires) < p.me.Processes-1 {
		select {
		case w := <-d.arrived:
			p.admit(d, w)
		case w := <-d.departed:
			p.at.say("the process of %s has ended before all processes had joined; another may take its place",
				w.peer.who())
			p.drop(w)
		case err := <-d.failed:
			return p.giveUp(err)
		case <-remind.C:
			p.reassure()
		case <-look.C:
			p.at.say("process 0 waits for %d of %d processes: those of %s", p.me.Processes-1-len(p.wires),
				p.me.Processes, p.missingRanks())
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return p.giveUp(p.missingError(d, within))
		}
	}
	return p.introduce()
}

// admit accepts a caller, or refuses it.
func (p *leader) admit(d *door, w *wire) {
	h := &w.peer
	here, callerText := p.me.refuses(h, w.proof(p.me.Program))
	if o := h.Process; here == "" && p.all[o].Count > 0 {
		here = fmt.Sprintf("two processes have %s: process %d on %s and another on %s", h.ranks(), o,
			p.all[o].Host, h.Host)
		callerText = here
	}
	if here != "" {
		d.refused(w, here, callerText != otherProgram)
		d.busy.Go(func() { // the caller may not read
			_ = w.SetDeadline(time.Now().Add(2 * time.Second))
			_ = w.sendValue(fault, failure{0, callerText, true})
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
			d.reportDeparture(w)
		}
	}()
	p.reassure(w)
}

// reassure sends alive frames to waiting processes: to all if none is given.
func (p *leader) reassure(wires ...*wire) {
	if len(wires) == 0 {
		wires = p.wires
	}
	for _, w := range wires {
		_ = w.SetWriteDeadline(time.Now().Add(time.Second))
		_ = w.write(alive, nil) // if it fails, the process is gone, which its reader finds
	}
}

// drop removes a process that has joined and left.
func (p *leader) drop(w *wire) {
	w.Close()
	if i := slices.Index(p.wires, w); i >= 0 {
		p.wires = slices.Delete(p.wires, i, i+1)
		p.all[w.peer.Process] = Hello{}
	}
}

// missingRanks lists the ranks of processes that have not joined, but not too many.
func (p *leader) missingRanks() string {
	const limit = 8
	var names []string
	for i := range p.all {
		if p.all[i].Count == 0 {
			h := p.me.process(i)
			names = append(names, h.ranks())
		}
	}
	if n := len(names); n > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), n-limit)
	}
	return strings.Join(names, ", ")
}

// missingError returns the error for processes that have not joined.
func (p *leader) missingError(d *door, within time.Duration) error {
	text := fmt.Sprintf("%d of %d processes have not joined within %v: those of %s", p.me.Processes-1-len(p.wires),
		p.me.Processes, within, p.missingRanks())
	if len(d.reasons) > 0 {
		text += "; refused: " + strings.Join(d.reasons, "; ")
	}
	if d.own { // their problem is the problem of the launch
		return &Refused{text}
	}
	return errors.New(text)
}

// giveUp tells all processes that have joined why there will be no run.
func (p *leader) giveUp(err error) error {
	for _, w := range p.wires {
		_ = w.SetWriteDeadline(time.Now().Add(time.Second))
		refused := (*Refused)(nil)
		_ = w.sendValue(fault, failure{0, err.Error(), errors.As(err, &refused)})
	}
	return err
}

// introduce sends the list of all processes to each of them.
func (p *leader) introduce() error {
	b, err := json.Marshal(p.all)
	if err != nil {
		return err
	}
	slices.SortFunc(p.wires, func(a, b *wire) int { return a.peer.Process - b.peer.Process })
	for _, w := range p.wires {
		_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if err := w.write(members, b); err != nil {
			return p.giveUp(fmt.Errorf("the process of %s: %w", w.peer.who(), err))
		}
	}
	return nil
}

// lookupHost resolves a host name.
var lookupHost = net.DefaultResolver.LookupHost

// listenAt returns the addresses at which the lead listens ("" means all addresses of the machine), and the reason if
// they differ from the given one.
func (p *leader) listenAt(ctx context.Context, host string) (all []string, why string, err error) {
	switch {
	case net.ParseIP(host) != nil || host == "":
		return []string{host}, "", nil
	case host == "localhost" && p.at.OtherMachines:
		return []string{""}, "the launcher gives it localhost, and processes may run on other machines", nil
	}
	all, err = lookupHost(ctx, host)
	if err != nil || host == "localhost" {
		return all, "", err
	}
	if !slices.ContainsFunc(all, func(a string) bool { ip := net.ParseIP(a); return ip == nil || !ip.IsLoopback() }) {
		return []string{""}, quoted(host) + " is a loopback address on this machine, which others cannot reach; use " +
			"an IP address to listen only on that one", nil
	}
	return all, "", nil
}

// open listens at the launch's address. It retries while a name cannot be resolved.
func (p *leader) open(ctx context.Context, within time.Duration) (*door, error) {
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
			return newDoor(ctx, p.Peers, all), nil
		}
		if none := descriptorError(err); none != nil {
			return nil, none
		}
		late := (*net.DNSError)(nil)
		if !errors.As(err, &late) && (net.ParseIP(host) != nil || !errors.Is(err, syscall.EADDRNOTAVAIL)) {
			return nil, err
		}
		if ctx.Err() == nil && time.Now().After(next) {
			reason := connectReason(err)
			if errors.Is(err, syscall.EADDRNOTAVAIL) {
				reason += ": " + noAddress
			}
			p.at.say("process 0 cannot listen at %s yet: %s; it goes on trying (--join-timeout %v)", p.at.Addr,
				reason, within)
			next = time.Now().Add(reportEvery)
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

// listenOn listens on those of the addresses that this machine has. It fails if one of them is in use.
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
