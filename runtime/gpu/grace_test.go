//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/launch"
)

// What does not end after a failure does not keep the process, which says why the run has failed and what it waited for; what ends does no
// harm.
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
		if _, err = rt.Run(context.Background(), p, rt.Dir(t.TempDir()), rt.Data(drawn{}), rt.Logger(slog.New(slog.DiscardHandler))); err == nil {
			t.Error("the run has not failed")
		}
	}
	in.Close()
	text, _ := io.ReadAll(out)
	for _, what := range []string{"an abort", "a step"} {
		if !strings.Contains(string(text), "the run has failed, and "+what+" does not end within 1ms, so that the process is ended: a test's failure") {
			t.Errorf("told:\n%s", text)
		}
	}
	grace = time.Hour
	(&device{}).patiently("nothing", func() {})
	if len(ended) != 0 {
		t.Error("the process is ended though all has")
	}
}

// stuck are devices that nobody gets: one rank fails, and the other waits until the process is ended.
type stuck struct {
	stick func(*device)
}

func (s stuck) Open(*rt.Team) (string, error) { return "nothing", nil }
func (s stuck) Meet(context.Context, *launch.Launch, string, string, time.Duration) (rt.Peers, error) {
	return nil, errors.New("there is one process")
}
func (s stuck) Take(r *rt.Rank) (rt.Device, error) {
	if r.ID > 0 {
		return nil, errors.New("a test's failure")
	}
	s.stick(&device{rank: r})
	return nil, errors.New("another failure")
}
