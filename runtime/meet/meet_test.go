package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// free is an address at which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func member(i, n int) Hello {
	return Hello{Process: i, Processes: n, Ranks: 2 * n, First: 2 * i, Count: 2, Host: fmt.Sprint("h", i),
		Program: "abc"}
}

// join has n processes join, the lead last; change may make them differ.
func join(t *testing.T, n int, within time.Duration, change func(*Hello)) ([]*Peers, []error) {
	t.Helper()
	addr := free(t)
	peers, errs := make([]*Peers, n), make([]error, n)
	var all sync.WaitGroup
	for i := n - 1; i >= 0; i-- {
		h := member(i, n)
		change(&h)
		if h.Count == 0 {
			continue
		}
		all.Go(func() { peers[i], errs[i] = Join(t.Context(), Place{Addr: addr}, h, within) })
		time.Sleep(20 * time.Millisecond)
	}
	all.Wait()
	return peers, errs
}

func met(t *testing.T, n int) []*Peers {
	t.Helper()
	peers, errs := join(t, n, 10*time.Second, func(*Hello) {})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return peers
}

// Messages arrive in order, whatever their size, and the end of a run is no failure.
func TestMessages(t *testing.T) {
	peers := met(t, 3)
	var all sync.WaitGroup
	for i, p := range peers {
		all.Go(func() {
			defer p.Close()
			for turn := range 100 {
				got, err := p.Exchange(fmt.Append(nil, strings.Repeat("x", turn*turn*i), i, turn))
				if err != nil {
					t.Error(err)
					return
				}
				for j, b := range got {
					if want := fmt.Sprint(strings.Repeat("x", turn*turn*j), j, turn); string(b) != want {
						t.Errorf("turn %d: process %d has %d bytes of process %d, not %d", turn, i, len(b),
							j, len(want))
					}
				}
			}
			if b, err := p.Broadcast([]byte("done")); err != nil || string(b) != "done" {
				t.Error(string(b), err)
			}
		})
	}
	all.Wait()
	for i, p := range peers {
		if err := p.Err(); err != nil || len(p.All()) != 3 || p.All()[2].Host != "h2" {
			t.Errorf("process %d: %v, %v", i, err, p.All())
		}
	}
}

// Who does not fit is refused by name, on both sides; all others wait for the right one until the time is over, and
// hear then of whom was refused. What a process of another program hears says nothing of the launch.
func TestRefused(t *testing.T) {
	const program = "the process of ranks 4 to 5 on h2 runs another program than this one, of digest abc"
	for _, c := range []struct {
		lead, caller string
		change       func(*Hello)
	}{
		{program, "this process runs another program than process 0: start the same binary everywhere (here its " +
			"digest is xyz)", func(h *Hello) {
			h.Program = "xyz"
		}},
		{"the process of ranks 4 to 5 on h2 is compiled for 7 ranks, but here there are 6", "", func(h *Hello) {
			h.Ranks = 7
		}},
		{`the process of ranks 4 to 5 on h2 is of another launch, "2", but here it is ""`, "", func(h *Hello) {
			h.Run = "2"
		}},
		{"the process of ranks 4 to 5 on h2 was started with other settings: b=2, but here ", "", func(h *Hello) {
			h.Settings = "b=2"
		}},
		{"the process of ranks 2 to 3 on h2 says that it is process 2, which has ranks 4 to 5", "", func(h *Hello) {
			h.First = 2
		}},
		{"two processes have ranks 2 to 3: process 1 on h1 and another on h2", "", func(h *Hello) {
			h.Process, h.First = 1, 2
		}},
	} {
		t.Run(c.lead, func(t *testing.T) {
			t.Parallel()
			addr := free(t)
			var all sync.WaitGroup
			errs := make([]error, 3)
			start := func(i int, h Hello) {
				all.Go(func() { _, errs[i] = Join(t.Context(), Place{Addr: addr}, h, 2*time.Second) })
				time.Sleep(200 * time.Millisecond)
			}
			start(0, member(0, 3))
			start(1, member(1, 3))
			h := member(2, 3)
			c.change(&h)
			start(2, h)
			all.Wait()
			if c.caller == "" {
				c.caller = c.lead
			}
			var r *Refused
			if !errors.As(errs[2], &r) || r.Text != c.caller {
				t.Errorf("the caller: %v", errs[2])
			}
			want := "1 of 3 processes have not joined within 2s: those of ranks 4 to 5; refused: " + c.lead
			for i, err := range errs[:2] {
				if err == nil || err.Error() != "joining at "+addr+": "+want ||
					errors.As(err, &r) == (c.lead == program) {
					t.Errorf("process %d: %v", i, err)
				}
			}
		})
	}
}

// Who does not come is named, with how long was waited, to all that have.
func TestAbsent(t *testing.T) {
	_, errs := join(t, 3, time.Second, func(h *Hello) {
		if h.Process == 1 {
			h.Count = 0
		}
	})
	for _, i := range []int{0, 2} {
		if errs[i] == nil || !strings.Contains(errs[i].Error(),
			"1 of 3 processes have not joined within 1s: those of ranks 2 to 3") {
			t.Errorf("process %d: %v", i, errs[i])
		}
	}
	_, err := Join(t.Context(), Place{Addr: free(t)}, member(1, 2), 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "cannot reach process 0 within 300ms") {
		t.Error(err)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "HTTP/1.1 400 Bad Request")
		}
	}()
	addr := fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
	_, err = Join(t.Context(), Place{Addr: addr, UsedBy: "torchrun's own store"}, member(0, 2), time.Second)
	if err == nil || !strings.Contains(err.Error(), "another process uses the port") ||
		!strings.Contains(err.Error(), "torchrun's own store") {
		t.Error(err)
	}
	_, err = Join(t.Context(), Place{Addr: addr}, member(1, 2), time.Second)
	if err == nil || !strings.Contains(err.Error(), "not a planc program") {
		t.Error(err)
	}
}

// A failure reaches all, also those between whom there is no connection, with whose it is.
func TestFailure(t *testing.T) {
	for name, end := range map[string]func(*Peers){
		"has failed: out of memory":   func(p *Peers) { p.Fail(errors.New("out of memory")) },
		"has ended without a message": func(p *Peers) { p.wires[0].Close() },
		"has been silent for 1s":      func(p *Peers) { p.wires[0].mutex.Lock() }, // as where it was stopped
	} {
		t.Run(name, func(t *testing.T) {
			defer func(a, b time.Duration) { quiet, remind = a, b }(quiet, remind)
			quiet, remind = time.Second, 100*time.Millisecond
			peers := met(t, 3)
			end(peers[1])
			for _, i := range []int{0, 2} {
				_, err := peers[i].Exchange(nil)
				if err == nil || !strings.Contains(err.Error(), "the process of ranks 2 to 3 on h1 "+name) {
					t.Errorf("process %d: %v", i, err)
				}
			}
			for i, p := range peers {
				if i == 1 && !p.wires[0].mutex.TryLock() {
					p.wires[0].mutex.Unlock()
				} else if i == 1 {
					p.wires[0].mutex.Unlock()
				}
				p.Close()
			}
		})
	}
}

// Whom a call waits for is known while it waits.
func TestAwaited(t *testing.T) {
	peers := met(t, 2)
	var all sync.WaitGroup
	all.Go(func() { _, _ = peers[0].Gather(nil) })
	for begin := time.Now(); peers[0].WaitingFor() != "ranks 2 to 3 on h1"; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("process 0 waits for %q", peers[0].WaitingFor())
		}
	}
	_, _ = peers[1].Gather(nil)
	all.Wait()
	if got := peers[0].WaitingFor(); got != "" {
		t.Errorf("nobody is waited for, not %s", got)
	}
	for _, p := range peers {
		all.Go(p.Close)
	}
	all.Wait()
}

// Joining ends when the run does.
func TestJoinIsCancelled(t *testing.T) {
	why := errors.New("stopped")
	for i := range 2 {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		if _, err := Join(ctx, Place{Addr: free(t)}, member(i, 2), time.Minute); !errors.Is(err, why) {
			t.Errorf("process %d: %v", i, err)
		}
	}
}
