package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// others are processes that hear of nothing but failures.
type others struct {
	Peers
	err error
}

func (o *others) Fail(err error) { o.err = err }
func (o *others) Err() error     { return o.err }
func (o *others) Close()         {}

// A process that leaves with an error of its own has its ranks fail: what they have begun on devices may wait for peers
// that do not come any more. One that leaves as all do has them end what they began.
func TestLeave(t *testing.T) {
	broken := errors.New("a full disk")
	for _, c := range []struct {
		err   error
		fails bool
	}{{broken, true}, {exit.Errorf(exit.Failed, "a full disk"), true}, {exit.Errorf(exit.Nonfinite,
		"step 3 is not finite"), false}, {nil, false}} {
		crew, err := newCrew(bigram[float32](4, 1), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{team: &Team{Peers: &others{}}, crew: crew, ended: make(chan struct{})}
		if got := r.leaveTeam(c.err); got != c.err {
			t.Errorf("%v became %v", c.err, got)
		}
		if failed := crew.world.Err(); (failed != nil) != c.fails {
			t.Errorf("%v: ranks fail with %v", c.err, failed)
		}
		crew.close()
	}
}

// opened are devices that open with an error.
type opened struct{ err error }

func (o opened) Open(*Team) (string, error) { return "", o.err }
func (o opened) Meet(context.Context, *launch.Launch, string, string, time.Duration, func(string)) (Peers, error) {
	return nil, nil
}
func (o opened) Take(*rank.Rank) (rank.Device, error) { return nil, o.err }

// What a machine lacks is exit 3, and a process that ends while devices are opened is exit 1 for the others.
func TestPeerLostWhileOpening(t *testing.T) {
	lost, lacks := errors.New("the process of rank 1 on h1 has ended without a message"),
		errors.New("the driver shows no GPU")
	for _, c := range []struct {
		opening, peers error
		want           int
	}{{lacks, nil, exit.Cannot}, {lost, lost, exit.Failed}, {fmt.Errorf("openNCCL: %w", lost), lost, exit.Failed},
		{lacks, lost, exit.Cannot}} {
		p := bigram[float32](4, 1)
		p.Devices = opened{c.opening}
		r := &run{p: p, team: &Team{Peers: &others{err: c.peers}}}
		var coded *exit.Error
		if err := r.openDevices(); !errors.As(err, &coded) || coded.Code != c.want || !errors.Is(err, c.opening) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Data that differs is named, and so is what else does.
func TestAgreedDiffers(t *testing.T) {
	own := launchInputs{"abc", "a.txt", 100, "0123"}
	for want, change := range map[string]func(*launchInputs){
		"processes train on different data: process 0 on a.txt (digest abc), and process 3 on b\\u001b.txt (digest " +
			"xyz). Every process needs the same data files, of the same contents: give each the same --data, or copy " +
			"the files again": func(a *launchInputs) {
			a.Data, a.Files = "xyz", "b\x1b.txt"
		},
		"processes train for different lengths: process 0 to step 100, and process 3 to step 200. Start all with the " +
			"same flags": func(a *launchInputs) {
			a.Steps = 200
		},
		"processes train with different settings: their digest is 0123 in process 0, and 4567 in process 3. Start " +
			"all with the same flags and binary": func(a *launchInputs) {
			a.Settings = "4567"
		},
	} {
		other := own
		change(&other)
		if err := own.checkEqual(&other, 3); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	elsewhere := own
	elsewhere.Files = "/other/a.txt"
	if own.checkEqual(&elsewhere, 1) != nil {
		t.Error("the same data under another path is refused")
	}
}

// A program that calls Run under a launcher trains alone, and says so.
func TestRunAloneUnderLauncher(t *testing.T) {
	for name, want := range map[string]string{
		"JOB_COMPLETION_INDEX": "JOB_COMPLETION_INDEX=2 (a Kubernetes Indexed Job)",
		"WORLD_SIZE":           "WORLD_SIZE=2 (torchrun)", "PLANC_NO_LAUNCHER": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "2")
			var out strings.Builder
			r := &run{p: bigram[float32](4, 1)}
			text(&out, false)(&r.o)
			r.report = r.o.printer()
			if err := r.join(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want != "" {
				want = "warning: " + want + " says that this process is one of several, and Run trains in this " +
					"process alone: each process trains a model of its own\n"
			}
			if out.String() != want {
				t.Errorf("it says %q, want %q", out.String(), want)
			}
		})
	}
}

// silent are processes that live and tell nothing, or what they like.
type silent struct {
	Peers
	tells  []byte
	failed chan error
}

func (s *silent) Exchange(own []byte) ([][]byte, error) {
	if s.tells != nil {
		return [][]byte{own, s.tells}, nil
	}
	return nil, <-s.failed
}
func (s *silent) WaitingFor() string { return "ranks 2 to 3 on h1" }
func (s *silent) Fail(err error)     { s.failed <- err }

// A process that lives and does not go on ends the run at the deadline, and one that tells of other ranks than it has
// is an error.
func TestStuckProcess(t *testing.T) {
	p := bigram[float32](4, 1)
	p.Predict.StepSeconds = 0.002
	for want, tells := range map[string]string{
		"process 0 has waited 70ms for the process of ranks 2 to 3 on h1: it is alive but makes no progress, for " +
			"example because a disk does not respond. The limit is --timeout or PLANC_TIMEOUT (50ms) plus ten times " +
			"the step": "",
		"process 1 reports 3 ranks, but it has 2": `{"Ranks":[{},{},{}]}`,
		"process 1 reports 0 ranks, but it has 2": `{}`,
	} {
		team := &Team{Launch: &launch.Launch{Processes: 2, Ranks: 4, Count: 2}}
		crew, err := newCrew(p, 50*time.Millisecond, team)
		if err != nil {
			t.Fatal(err)
		}
		s := &silent{failed: make(chan error, 1)}
		if tells != "" {
			s.tells = []byte(tells)
		}
		team.Peers = s
		r := &run{p: p, team: team, crew: crew, ctx: t.Context(), metrics: &report.Metrics{}}
		if err := r.exchangeReports(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		crew.close()
	}
}
