package meet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// received collects what is reported.
type received struct {
	mutex sync.Mutex
	lines []string
}

func (h *received) say(s string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.lines = append(h.lines, s)
}

func (h *received) text() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return strings.Join(h.lines, "\n")
}

// lead starts process 0 of two; its result comes when the launch is complete.
func lead(t *testing.T, at Place) (joined func() *Peers) {
	t.Helper()
	type result struct {
		p   *Peers
		err error
	}
	done := make(chan result, 1)
	go func() {
		p, err := Join(t.Context(), at, member(0, 2), 20*time.Second)
		done <- result{p, err}
	}()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", at.Addr)
		if err == nil {
			c.Close()
			break
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal(err)
		}
	}
	return func() *Peers {
		t.Helper()
		r := <-done
		if r.err != nil {
			t.Fatalf("the lead: %v", r.err)
		}
		return r.p
	}
}

// completes has the launch's own process come, after all that strangers did.
func completes(t *testing.T, at Place, joined func() *Peers) {
	t.Helper()
	p, err := Join(t.Context(), Place{Addr: at.Addr}, member(1, 2), 20*time.Second)
	if err != nil {
		t.Fatalf("the launch's own process: %v", err)
	}
	var all sync.WaitGroup
	for _, p := range []*Peers{p, joined()} {
		all.Go(func() {
			if _, err := p.Exchange([]byte("all is well")); err != nil {
				t.Error(err)
			}
			p.Close()
		})
	}
	all.Wait()
}

// proven stands in what a stranger sends for the proof of the program's digest, which some know. It is as long.
var proven = strings.Repeat("p", 64)

// stranger sends bytes after the greeting, and hears what is answered.
func stranger(t *testing.T, addr string, send []byte) (answer []byte) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	var n nonces
	n.caller, n.lead, err = greet(c)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(bytes.ReplaceAll(send, []byte(proven), []byte(n.proof("abc"))))
	_ = c.(*net.TCPConn).CloseWrite()
	answer, _ = io.ReadAll(c)
	return answer
}

// frame is one as a stranger may send it.
func frame(k kind, announced int, b []byte) []byte {
	head := headOf(k, announced)
	return append(head[:], b...)
}

func helloFrame(h any) []byte {
	b, _ := json.Marshal(h)
	return frame(hello, len(b), b)
}

// forged are hellos of strangers, as hostile use has tried them, and worse.
func forged() [][]byte {
	change := func(f func(*Hello)) []byte {
		h := member(1, 2)
		h.Program = proven
		f(&h)
		return helloFrame(h)
	}
	ok := helloFrame(member(1, 2))
	return [][]byte{
		change(func(h *Hello) { h.Count = 0 }), change(func(h *Hello) { h.Count = 0 }), // twice
		change(func(h *Hello) {
			h.Count = -1
		}), change(func(h *Hello) {
			h.Count = 1 << 62
		}), change(func(h *Hello) {
			h.First = -1 << 63
		}),
		change(func(h *Hello) {
			h.Process = -1
		}), change(func(h *Hello) {
			h.Process = 1 << 62
		}), change(func(h *Hello) {
			h.Process = 0
		}),
		change(func(h *Hello) {
			h.Processes = 0
		}), change(func(h *Hello) {
			h.Processes = -1 << 63
		}), change(func(h *Hello) {
			h.Ranks = 0
		}),
		change(func(h *Hello) {
			h.Program = "guessed"
		}), change(func(h *Hello) {
			h.Program = ""
		}), change(func(h *Hello) {
			h.Program = "abc"
		}),
		change(func(h *Hello) {
			h.Run = "an earlier launch"
		}), change(func(h *Hello) {
			h.Settings = strings.Repeat("x", 60<<10)
		}),
		helloFrame([]int{1}), helloFrame("hello"), helloFrame(map[string]any{"Count": 1e300}),
		frame(hello, 1<<62, nil), frame(hello, -1, nil), frame(hello, helloLimit, nil), frame(hello, helloLimit+1, nil),
		frame(members, 2, []byte("[]")), frame(fault, 2, []byte("{}")), frame(0, 0, nil), frame(255, 1<<40, nil), {},
		{byte(hello)}, ok[:len(ok)-1],
		[]byte("GET / HTTP/1.1\r\n\r\n"), bytes.Repeat([]byte{0xff}, 1<<16),
	}
}

// No stranger ends a launch or takes memory of it, whatever is sent.
func TestStrangers(t *testing.T) {
	at := Place{Addr: free(t)}
	var log received
	at.Say = log.say
	joined := lead(t, at)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, f := range forged() {
		stranger(t, at.Addr, f)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("strangers had %d MiB allocated", took>>20)
	}
	completes(t, at, joined)
	if text := log.text(); !strings.Contains(text, `process 0 has refused a caller from 127.0.0.1:`) ||
		strings.Count(text, "\n") > 20 {
		t.Errorf("reported:\n%s", text)
	}
}

// What a stranger hears says nothing of the program, and what a process of an earlier launch hears does not end the new
// one.
func TestNothingIsRevealed(t *testing.T) {
	at := Place{Addr: free(t)}
	joined := lead(t, at)
	h := member(1, 2)
	h.Program, h.Run, h.Settings = "guessed", "r", "s"
	want := `{"Process":0,"Text":"this process runs another program than process 0: start the same binary ` +
		`everywhere","Refused":true}`
	if got := stranger(t, at.Addr, helloFrame(h)); string(got[min(9, len(got)):]) != want {
		t.Errorf("a stranger hears %q", got)
	}
	completes(t, at, joined)
}

// Whoever listens where process 0 is expected does not learn the program's digest, and what it learns is of no use on
// another connection.
func TestDigestIsNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	me := member(1, 2)
	me.Program = "the digest of the program"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = Join(ctx, Place{Addr: l.Addr().String()}, me, time.Minute) }()
	var proofs []string
	for range 2 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := greet(c); err != nil {
			t.Fatal(err)
		}
		h, err := readHello(c)
		if err != nil || strings.Contains(h.Program, me.Program) || len(h.Program) != len(proven) {
			t.Errorf("a stranger hears %+v, %v", h, err)
		}
		proofs = append(proofs, h.Program)
		c.Close()
	}
	if proofs[0] == proofs[1] {
		t.Error("what was heard on one connection is a proof on another")
	}
}

// A stranger's terminal escapes, and texts that are written from right to left, are shown escaped.
func TestEscapes(t *testing.T) {
	at := Place{Addr: free(t)}
	var log received
	at.Say = log.say
	joined := lead(t, at)
	h := member(1, 2)
	h.Program = "\x1b]0;owned\x07"
	h.Host = "\x1b[2J\u202e\x07\xff" + strings.Repeat("x", 1000)
	stranger(t, at.Addr, helloFrame(h))
	h = member(1, 2)
	h.Program, h.Settings = proven, "\r\nstep 1/1 loss 0"
	stranger(t, at.Addr, helloFrame(h))
	completes(t, at, joined)
	for _, want := range []string{`on \u001b[2J\u202e\u0007�xxx`, `other settings: \u000d\u000astep 1/1 loss 0`,
		"xxx... ("} {
		if !strings.Contains(log.text(), want) {
			t.Errorf("lacks %s:\n%s", want, log.text())
		}
	}
	if strings.ContainsAny(log.text(), "\x1b\u202e\x07\r") || len(log.text()) > 4000 {
		t.Errorf("%d bytes, with characters that a terminal obeys: %q", len(log.text()), log.text())
	}
	if got := readFailure([]byte(`{"Process":3,"Text":"a\u001b[31m\n\tb"}`)); got.Text != "a\\u001b[31m\n\tb" {
		t.Errorf("a failure's text is %q", got.Text)
	}
}

// Connections that say nothing are few at a time, take no memory, and keep nobody out.
func TestIdleConnections(t *testing.T) {
	at := Place{Addr: free(t)}
	joined := lead(t, at)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var idle []net.Conn
	for range 4 * maxStrangers {
		c, err := net.Dial("tcp", at.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	shown := 0
	for _, c := range idle[:2*maxStrangers] { // the first to come are shown out
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
			shown++
		}
	}
	runtime.ReadMemStats(&after)
	if shown != 2*maxStrangers {
		t.Errorf("%d of the first %d connections were shown out", shown, 2*maxStrangers)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) / uint64(len(idle)); took > 16<<10 { // of both ends
		t.Errorf("a connection that says nothing had %d bytes allocated", took)
	}
	completes(t, at, joined)
}

// A process that ends before all have come leaves its place to another.
func TestEndsBeforeTheStart(t *testing.T) {
	addr := free(t)
	var log received
	var all sync.WaitGroup
	start := func(ctx context.Context, i int, say func(string)) {
		all.Go(func() {
			p, err := Join(ctx, Place{Addr: addr, Say: say}, member(i, 3), 20*time.Second)
			switch {
			case err == nil:
				p.Close()
			case ctx.Err() == nil:
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	start(t.Context(), 0, log.say)
	ends, end := context.WithCancel(t.Context())
	start(ends, 1, nil)
	want := "the process of ranks 2 to 3 on h1 has ended before all processes had joined; another may take its place"
	for begin := time.Now(); !strings.Contains(log.text(), want) &&
		time.Since(begin) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 500*time.Millisecond {
			end()
		}
	}
	end()
	if !strings.Contains(log.text(), want) {
		t.Errorf("lacks %q:\n%s", want, log.text())
	}
	start(t.Context(), 1, nil)
	start(t.Context(), 2, nil)
	all.Wait()
}

// A process that cannot reach or resolve the master says so at once and again, and when it has reached it.
func TestUnreachedIsReported(t *testing.T) {
	defer func(d time.Duration) { reportEvery = d }(reportEvery)
	reportEvery = 300 * time.Millisecond
	addr := free(t)
	for host, want := range map[string]string{
		addr: "process 1 cannot reach process 0 at " + addr + " yet: dial tcp " + addr +
			": connect: connection refused; it goes on trying (--join-timeout 1s)",
		"no-such.invalid:2950": "process 1 cannot reach process 0 at no-such.invalid:2950 yet: no-such.invalid " +
			"cannot be resolved (",
	} {
		var log received
		_, err := Join(t.Context(), Place{Addr: host, Say: log.say}, member(1, 2), time.Second)
		if err == nil || !strings.Contains(err.Error(), "cannot reach process 0 within 1s") {
			t.Error(err)
		}
		if n := strings.Count(log.text(), want); n < 2 || n > 5 {
			t.Errorf("%d times %q:\n%s", n, want, log.text())
		}
	}
	var own received
	if _, err := Join(t.Context(), Place{Addr: "no-such.invalid:2950", Say: own.say}, member(0, 2),
		time.Second); err == nil {
		t.Error("process 0 listens at a name that there is not")
	}
	if n := strings.Count(own.text(), "process 0 cannot listen at no-such.invalid:2950 yet: no-such.invalid cannot "+
		"be resolved ("); n < 2 || n > 5 {
		t.Errorf("process 0 reports %d times:\n%s", n, own.text())
	}
	var log received
	done := make(chan error, 1)
	go func() {
		p, err := Join(t.Context(), Place{Addr: addr, Say: log.say}, member(1, 2), 20*time.Second)
		if err == nil {
			defer p.Close()
		}
		done <- err
	}()
	for begin := time.Now(); log.text() == "" && time.Since(begin) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
	}
	p, err := Join(t.Context(), Place{Addr: addr}, member(0, 2), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if err := <-done; err != nil || !strings.HasSuffix(log.text(), "process 1 has reached process 0 at "+addr) {
		t.Errorf("%v\n%s", err, log.text())
	}
}

// A process whose own time of joining is over before process 0's says so.
func TestOwnTimeIsOver(t *testing.T) {
	defer func(d time.Duration) { finalWait = d }(finalWait)
	finalWait = 100 * time.Millisecond
	addr := free(t)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	all.Go(func() { _, _ = Join(ctx, Place{Addr: addr}, member(0, 3), time.Minute) })
	_, err := Join(t.Context(), Place{Addr: addr}, member(1, 3), 500*time.Millisecond)
	if err == nil || !strings.HasSuffix(err.Error(),
		"not all processes have joined within 500ms: process 0 is waiting for others") {
		t.Error(err)
	}
	all.Go(func() {
		if _, err := Join(t.Context(), Place{Addr: addr}, member(1, 3), time.Minute); err == nil ||
			!strings.HasSuffix(err.Error(),
				"before all processes had joined, process 0 has ended without a message; its own output may say why") {
			t.Error(err)
		}
	})
	time.Sleep(300 * time.Millisecond)
	cancel()
	all.Wait()
}

// The lead reports whom it waits for.
func TestAbsentAreReported(t *testing.T) {
	defer func(d time.Duration) { reportEvery = d }(reportEvery)
	reportEvery = 200 * time.Millisecond
	var log received
	_, err := Join(t.Context(), Place{Addr: free(t), Say: log.say}, member(0, 20), time.Second)
	want := "those of ranks 2 to 3, ranks 4 to 5, ranks 6 to 7, ranks 8 to 9, ranks 10 to 11, ranks 12 to 13, ranks " +
		"14 to 15, ranks 16 to 17 and 11 more"
	if err == nil || !strings.Contains(err.Error(), "19 of 20 processes have not joined within 1s: "+want) {
		t.Error(err)
	}
	if !strings.Contains(log.text(), "process 0 waits for 19 of 20 processes: "+want) {
		t.Error(log.text())
	}
}

// The lead listens on the address that was given, and not on others.
func TestListensAtTheGivenAddress(t *testing.T) {
	for _, c := range []struct {
		host  string
		wide  bool
		open  []string
		shut  []string
		print string
	}{
		{"127.0.0.1", false, []string{"127.0.0.1"}, []string{"127.0.0.2"}, ""},
		{"127.0.0.1", true, []string{"127.0.0.1"}, []string{"127.0.0.2"}, ""},
		{"localhost", false, []string{"127.0.0.1"}, []string{"127.0.0.2"}, ""},
		{"0.0.0.0", false, []string{"127.0.0.1", "127.0.0.2"}, nil, ""},
		{"localhost", true, []string{"127.0.0.1", "127.0.0.2"}, nil,
			"process 0 listens on all addresses of this machine: the launcher gives it localhost, and processes may " +
				"run on other machines"},
	} {
		_, port, _ := net.SplitHostPort(free(t))
		var log received
		at := Place{Addr: c.host + ":" + port, OtherMachines: c.wide, Say: log.say}
		joined := lead(t, at)
		for _, a := range c.open {
			if d, err := net.DialTimeout("tcp", a+":"+port, time.Second); err != nil {
				t.Errorf("%+v: %v", c, err)
			} else {
				d.Close()
			}
		}
		for _, a := range c.shut {
			if d, err := net.DialTimeout("tcp", a+":"+port, time.Second); err == nil {
				t.Errorf("%+v: it listens at %s", c, a)
				d.Close()
			}
		}
		completes(t, at, joined)
		if log.text() != c.print {
			t.Errorf("%+v: reported %q", c, log.text())
		}
	}
	_, err := Join(t.Context(), Place{Addr: "192.0.2.1:29500"}, member(0, 2), time.Second)
	advice := ": this machine has no such address; process 0 listens at the master's address: start it on that " +
		"machine, or give process 0 alone one of " +
		"this machine's addresses, or 0.0.0.0 for all of them, as behind NAT or a Kubernetes Service " +
		"(--master-addr 0.0.0.0)"
	if err == nil || !strings.HasSuffix(err.Error(), advice) {
		t.Error(err)
	}
	defer func(f func(context.Context, string) ([]string, error)) { lookupHost = f }(lookupHost)
	// a name may mean this machine later
	lookupHost = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	var log received
	_, err = Join(t.Context(), Place{Addr: "service:29500", Say: log.say}, member(0, 2), time.Second)
	if err == nil || !strings.HasSuffix(err.Error(), advice) {
		t.Error(err)
	}
	if !strings.Contains(log.text(), advice+"; it goes on trying (--join-timeout 1s)") {
		t.Error(log.text())
	}
	for _, c := range []struct{ found, want, why string }{
		// as Debian's /etc/hosts has it
		{"127.0.1.1", "", "h0 is a loopback address on this machine, which others cannot reach; use an IP address to " +
			"listen only on that one"},
		{"::1 127.0.1.1", "", "h0 is a loopback address on this machine, which others cannot reach; use an IP " +
			"address to listen only on that one"},
		{"10.0.0.5 fe80::1%eth0", "10.0.0.5 fe80::1%eth0", ""},
		{"127.0.1.1 10.0.0.5", "127.0.1.1 10.0.0.5", ""},
	} {
		lookupHost = func(context.Context, string) ([]string, error) { return strings.Fields(c.found), nil }
		all, why, err := (&leader{&Peers{me: member(0, 2)}}).listenAt(t.Context(), "h0")
		if err != nil || strings.Join(all, " ") != c.want || why != c.why {
			t.Errorf("%+v: it listens at %q, %q, %v", c, all, why, err)
		}
	}
}
