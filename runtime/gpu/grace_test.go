//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/launch"
)

// Work that does not end after a failure does not keep the process alive. The process says why the run
// failed and what it waited for. Work that ends in time is not affected.
func TestGrace(t *testing.T) {
	before, exit, stderr := grace, endProcess, os.Stderr
	defer func() { grace, endProcess, os.Stderr = before, exit, stderr }()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr, grace = in, time.Millisecond
	ended := make(chan int, 1)
	endProcess = func(code int) { ended <- code }
	wait := func() {
		if code := <-ended; code != rt.ExitFailed {
			panic(code)
		}
	}
	for _, stick := range []func(d *device){
		func(d *device) { <-d.rank.Done(); d.patiently("an abort", wait) },
		func(d *device) { d.await("a step", func() error { wait(); return nil }) },
	} {
		p := toy{pp: 1}.program(false)
		p.Devices = stuck{stick}
		_, err = rt.Run(context.Background(), p, rt.Dir(t.TempDir()), rt.Data(drawn{}),
			rt.Logger(slog.New(slog.DiscardHandler)))
		if err == nil {
			t.Error("the run has not failed")
		}
	}
	in.Close()
	text, _ := io.ReadAll(out)
	for _, what := range []string{"an abort", "a step"} {
		if !strings.Contains(string(text),
			"the run has failed, and "+what+" has not ended within 1ms; ending the process. The run's error: "+
				"a test's failure") {
			t.Errorf("printed:\n%s", text)
		}
	}
	grace = time.Hour
	(&device{}).patiently("nothing", func() {})
	if len(ended) != 0 {
		t.Error("the process was ended although the call returned")
	}
}

// stuck is a set of devices that never open: one rank fails, and the other waits until the process is
// ended.
type stuck struct {
	stick func(*device)
}

func (s stuck) Open(*rt.Team) (string, error) { return "nothing", nil }
func (s stuck) Meet(context.Context, *launch.Launch, string, string, time.Duration, func(string)) (rt.Peers, error) {
	return nil, errors.New("there is one process")
}
func (s stuck) Take(r *rt.Rank) (rt.Device, error) {
	if r.ID > 0 {
		return nil, errors.New("a test's failure")
	}
	s.stick(newDevice(r, nil))
	return nil, errors.New("another failure")
}

// A call on the device that exceeds the deadline ends the run although all ranks are alive. One that takes
// ten of the longest steps does not.
func TestHung(t *testing.T) {
	defer func(d time.Duration) { watchInterval = d }(watchInterval)
	watchInterval = 10 * time.Millisecond
	run := func(longest time.Duration, wait func(d *device) error) error {
		p := toy{pp: 1}.program(false)
		p.Devices = waiting{longest, wait}
		_, err := rt.Run(context.Background(), p, rt.Dir(t.TempDir()), rt.Data(drawn{}),
			rt.Logger(slog.New(slog.DiscardHandler)), rt.Timeout(50*time.Millisecond))
		return err
	}
	hangs := func(d *device) error { <-d.rank.Done(); return errors.New("aborted") }
	err := run(2*time.Millisecond, hangs)
	want := "a step has not ended after 70ms: a collective waits for a missing rank, or a GPU hangs. The deadline is " +
		"the timeout (--timeout or PLANC_TIMEOUT, 50ms) plus ten times the longest step"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	if exit := (*rt.ExitError)(nil); !errors.As(err, &exit) || exit.Code != rt.ExitFailed {
		t.Errorf("%v is not exit 1", err)
	}
	slow := func(*device) error { time.Sleep(200 * time.Millisecond); return errors.New("it ended") }
	if err := run(time.Second, slow); err == nil || !strings.Contains(err.Error(), "it ended") {
		t.Errorf("a step of a fifth of the longest: %v", err)
	}
}

// waiting is a set of devices that each wait once.
type waiting struct {
	longest time.Duration
	wait    func(*device) error
}

func (w waiting) Open(*rt.Team) (string, error) { return "nothing", nil }
func (w waiting) Meet(context.Context, *launch.Launch, string, string, time.Duration, func(string)) (rt.Peers, error) {
	return nil, errors.New("there is one process")
}
func (w waiting) Take(r *rt.Rank) (rt.Device, error) {
	d := newDevice(r, nil)
	d.stopWatch, d.watchStopped = make(chan struct{}), make(chan struct{})
	d.longestStep.Store(math.Float64bits(w.longest.Seconds()))
	go d.watch()
	defer func() { close(d.stopWatch); <-d.watchStopped }()
	return nil, d.awaitErr("a step", func() error { return w.wait(d) })
}
