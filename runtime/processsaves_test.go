package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/meet"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/tensors"
)

// counters are devices on which a step only adds to the state, a different number for each rank and place, so that a
// checkpoint shows of which step each of its numbers is.
type counters struct {
	fails     func(process, step int) error // ends a process's step; nil: none does
	nonfinite [2]int                        // process and step after which a moment is infinite
}

func (counters) Open(*launch.Team) (string, error) { return "counters", nil }

func (counters) Meet(ctx context.Context, l *launch.Launch, program, settings string, within time.Duration,
	say func(string)) (launch.Peers, error) {
	return meet.Join(ctx, meet.Place{Addr: l.Addr}, meet.Hello{Process: l.Process, Processes: l.Processes,
		Ranks: l.Ranks, First: l.First, Count: l.Count, Host: "h", Program: program, Settings: settings}, within)
}

func (c counters) Take(r *rank.Rank) (rank.Device, error) {
	return &counter{r: r, memory: slices.Clone(r.Arena), counters: c}, nil
}

// counter is such a device.
type counter struct {
	rank.Device
	counters
	r      *rank.Rank
	memory []byte
	step   int
}

func (c *counter) Step(func()) {}

func (c *counter) AwaitStep() rank.StepResult {
	c.step++
	if c.fails != nil {
		rank.Check(c.fails(c.r.ID, c.step))
	}
	store := tensors.Store{Arena: c.memory}
	arena := &c.r.Stage.Arena
	for _, g := range arena.StateRegions() {
		x := tensors.View[float32](&store, g.Offset, g.Size/4)
		for i := range x {
			x[i] += float32(i + 1 + c.r.ID)
		}
	}
	if c.nonfinite == [2]int{c.r.ID, c.step} {
		moments := tensors.View[float32](&store, arena.Moment2.Offset, arena.Moment2.Size/4)
		moments[vocabPad/2] = float32(math.Inf(1)) // of w; before it is the rank's part of b
	}
	return rank.StepResult{Seconds: 1e-3}
}

func (c *counter) CanLaunchAhead() bool { return true }
func (c *counter) LastCompleted() int   { return c.step }
func (c *counter) Load()                {}
func (c *counter) Clear(int, int)       {}
func (c *counter) Upload(at, n int)     { copy(c.memory[at:at+n], c.r.Arena[at:]) }
func (c *counter) Download(at, n int)   { copy(c.r.Arena[at:at+n], c.memory[at:]) }
func (c *counter) Memory() int64        { return int64(len(c.memory)) }
func (c *counter) Close()               {}

func (c *counter) Infer(func())        {}
func (c *counter) Start(int, rank.Job) {}
func (c *counter) Wait(int, rank.Job)  {}

// counterProgram is a program whose ranks do not communicate, with the optimizer's state split over them.
func counterProgram(c counters) *rank.Program {
	p := bigram[float32](2, 1)
	p.Devices = c
	return p
}

// team runs the program in two processes, each in a goroutine. Each needs a folder of its own.
func team(t *testing.T, c counters, dirs [2]string, opts func(process int) []Option) (errs [2]error) {
	t.Helper()
	addr := freeAddress(t)
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() {
			l := &launch.Launch{By: "a test", Process: i, Processes: 2, Ranks: 2, First: i, Count: 1, Addr: addr}
			o := append([]Option{func(o *driver.Options) { o.Launch, o.JoinWithin = l, time.Minute }}, opts(i)...)
			_, errs[i] = train(t, counterProgram(c), dir, o...)
		})
	}
	all.Wait()
	return errs
}

// freeAddress returns an address at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.ReadFile(a)
	must(t, err)
	y, err := os.ReadFile(b)
	must(t, err)
	return bytes.Equal(x, y)
}

// Processes of a launch save, while they train, the same checkpoints as one process that trains between its saves.
func TestAsyncCheckpointsOfProcesses(t *testing.T) {
	between := t.TempDir()
	_, err := train(t, counterProgram(counters{}), between, Set("train.checkpoint.every", 1),
		Set("train.checkpoint.async", false))
	must(t, err)
	for _, every := range []int{1, 3} {
		dirs := [2]string{t.TempDir(), t.TempDir()}
		seen := 0
		steps := make(chan int, 100)
		// a checkpoint is written only after the next step has ended, except for that of the last step
		slow := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
			for every > 1 && m.Step < 12 && seen <= int(m.Step) {
				seen = <-steps
			}
			return ckpt.Save(dir, m, contents)
		}
		errs := team(t, counters{}, dirs, func(process int) []Option {
			save, onStep := slow, func(s report.Step) error { steps <- s.Step; return nil }
			if process > 0 {
				save, onStep = nil, func(report.Step) error { return nil }
			}
			return []Option{Set("train.checkpoint.every", every), Set("train.checkpoint.keep_last", 3), async(save),
				OnStep(onStep)}
		})
		must(t, errors.Join(errs[:]...))
		got, _ := savedSteps(t, dirs[0])
		if want := map[int][]int{1: {10, 11, 12}, 3: {6, 9, 12}}[every]; !slices.Equal(got, want) {
			t.Errorf("every %d: checkpoints %v, want %v", every, got, want)
		}
		for _, step := range got {
			for _, name := range []string{tensors.ModelFile, tensors.OptimizerFile} {
				file := filepath.Join("checkpoints", fmt.Sprintf("step-%08d", step), name)
				if !sameFile(t, filepath.Join(dirs[0], file), filepath.Join(between, file)) {
					t.Errorf("every %d: %s differs", every, file)
				}
			}
		}
		if _, err := os.Stat(filepath.Join(dirs[1], "checkpoints")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the other process has a folder of checkpoints (%v)", err)
		}
	}
}

// If the first process cannot write a checkpoint, at any of its files, all processes save the same later step. If it
// can write none, all end, and no earlier checkpoint is changed.
func TestAsyncFailureInATeam(t *testing.T) {
	full := fmt.Errorf("checkpoint: cannot save step 4: %w", syscall.ENOSPC)
	for _, tt := range []struct{ failures, fills int }{{1, 0}, {1, 1}, {1, 3}, {1, 5}, {2, 2}} {
		dirs, left := [2]string{t.TempDir(), t.TempDir()}, tt.failures
		save := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
			if m.Step < 4 || left == 0 {
				return ckpt.Save(dir, m, contents)
			}
			left--
			fills := tt.fills // the disk is full in the middle of a tensor
			for _, c := range contents {
				for j := range c.Tensors {
					if fills == 0 {
						return ckpt.Saved{}, full
					}
					fills--
					if err := c.Fill(j, shortWriter{}); !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("a full disk: %v", err)
					}
				}
			}
			return ckpt.Saved{}, full
		}
		var output bytes.Buffer
		errs := team(t, counters{}, dirs, func(process int) []Option {
			opts := []Option{Set("train.checkpoint.every", 2), async(save)}
			if process == 0 {
				opts = append(opts, text(&output, false))
			}
			return opts
		})
		got, _ := savedSteps(t, dirs[0])
		switch {
		case tt.failures == 2 && (!errors.Is(errs[0], syscall.ENOSPC) || errs[1] == nil ||
			!slices.Equal(got, []int{2})):
			t.Errorf("%+v: %v, checkpoints %v", tt, errs, got)
		case tt.failures == 1 && (errors.Join(errs[:]...) != nil || len(got) < 5 || !slices.Contains(got, 12)):
			t.Errorf("%+v: %v, checkpoints %v", tt, errs, got)
		}
		if want := "warning: " + full.Error() + "; a later step is saved instead\n"; !strings.Contains(
			output.String(), want) {
			t.Errorf("%+v: no %q in\n%s", tt, want, output.String())
		}
	}
}

// shortWriter is a full disk.
type shortWriter struct{}

func (shortWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A request to stop waits for the checkpoint that is written, and saves the last step. Both are complete.
func TestAsyncStopInATeam(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	ctx, stop := context.WithCancel(t.Context())
	slow := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
		if m.Step == 4 {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
		}
		return ckpt.Save(dir, m, contents)
	}
	errs := team(t, counters{}, dirs, func(process int) []Option {
		return []Option{Set("train.checkpoint.every", 4), Set("train.steps", 1000000), async(slow),
			OnStep(func(s report.Step) error {
				if process == 1 && s.Step == 6 {
					stop()
				}
				if s.Step == 6 {
					return driver.ErrStop
				}
				return nil
			})}
	})
	wantExit(t, errs[0], exit.OnRequest, "resume from checkpoint "+filepath.Join(dirs[0], "checkpoints",
		"step-00000006"))
	wantExit(t, errs[1], exit.OnRequest, "stopped on request after step 6")
	if got, _ := savedSteps(t, dirs[0]); !slices.Equal(got, []int{4, 6}) {
		t.Errorf("checkpoints %v", got)
	}
}

// A state that is not finite is not saved, and all processes end, whoever has the number.
func TestAsyncNonfiniteStateInATeam(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	errs := team(t, counters{nonfinite: [2]int{1, 5}}, dirs, func(int) []Option {
		return []Option{Set("train.checkpoint.every", 2), async(nil), Set("train.steps", 1000000)}
	})
	for _, err := range errs {
		wantExit(t, err, exit.Nonfinite, "step 6 is not saved: element 64 of tensor w.exp_avg_sq is +Inf, which is "+
			"not a finite number. ", "the last good checkpoint is of step 4; to continue, resume from "+
			filepath.Join(dirs[0], "checkpoints", "step-00000004"))
	}
	if got, _ := savedSteps(t, dirs[0]); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("checkpoints %v", got)
	}
}

// A process that fails while a checkpoint is written costs that checkpoint at most. What is committed stays, nothing
// half-written does, and all processes end.
func TestAsyncProcessFails(t *testing.T) {
	lost := errors.New("a device is lost")
	for failing := range 2 {
		dirs := [2]string{t.TempDir(), t.TempDir()}
		saving := make(chan struct{})
		save := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
			if m.Step == 6 {
				close(saving)
				time.Sleep(100 * time.Millisecond)
			}
			return ckpt.Save(dir, m, contents)
		}
		fails := func(process, step int) error {
			if process == failing && step == 8 {
				<-saving
				return lost
			}
			return nil
		}
		errs := team(t, counters{fails: fails}, dirs, func(int) []Option {
			return []Option{Set("train.checkpoint.every", 3), async(save)}
		})
		if !strings.Contains(fmt.Sprint(errs[failing]), lost.Error()) ||
			!strings.Contains(fmt.Sprint(errs[1-failing]), lost.Error()) {
			t.Errorf("process %d fails: %v", failing, errs)
		}
		if got, _ := savedSteps(t, dirs[0]); !slices.Equal(got, []int{3}) && !slices.Equal(got, []int{3, 6}) {
			t.Errorf("process %d fails: checkpoints %v", failing, got)
		}
		if left, _ := filepath.Glob(filepath.Join(dirs[0], "checkpoints", ".tmp-*")); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
}
