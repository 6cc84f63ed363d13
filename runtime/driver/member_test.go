package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// idle is a program of a number of ranks that computes nothing.
func idle(ranks int) *rank.Program {
	nothing := func(*rank.Rank, *rank.Block) {}
	return &rank.Program{
		ProgramData: program.Program{Elem: program.F32, Mesh: []program.Axis{{Name: "dp", Size: ranks}},
			Model: program.Model{Vocab: 11}, Tokens: -1, Loss: -1, World: -1,
			Batch: program.BatchLayout{MicroBatch: 8 / ranks, MicroBatches: 1, SeqLen: 6, Replicas: ranks,
				ReplicaAxes: []string{"dp"}, GlobalBatch: 8},
			Stages: []program.Stage{{Schedule: "F0 B0 U", Chunks: []program.Chunk{{Runs: []program.LayerRun{{Count: 1}},
				Buffers: 1}}}}},
		Segments: []rank.Segment{{Forward: nothing, Backward: nothing}},
	}
}

// zeros is a source of token 0, which fails or hangs until over is closed.
type zeros struct {
	err   error
	hangs bool
	over  chan struct{}
}

func (z *zeros) Train(_ int64, tokens, labels []int32) (int, error) {
	if z.hangs {
		<-z.over
	}
	clear(tokens)
	clear(labels)
	return len(tokens), z.err
}
func (z *zeros) TrainSamples() int64 { return 40 }
func (z *zeros) ValidSamples() int64 { return 0 }

func (z *zeros) Valid(g int64, tokens, labels []int32) (int, error) {
	return z.Train(g, tokens, labels)
}

// others are processes that hear of nothing but failures.
type others struct {
	launch.Peers
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
		crew, err := newCrew(idle(4), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &member{job: &job{team: &launch.Team{Peers: &others{}}, crew: crew}, ended: make(chan struct{})}
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

func (o opened) Open(*launch.Team) (string, error) { return "", o.err }
func (o opened) Meet(context.Context, *launch.Launch, string, string, time.Duration, func(string)) (launch.Peers,
	error) {
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
		p := idle(4)
		p.Devices = opened{c.opening}
		r := &run{job: &job{p: p, team: &launch.Team{Peers: &others{err: c.peers}}}}
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
			r := &member{job: &job{p: idle(4)}}
			r.o.Text = &out
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
	launch.Peers
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
	p := idle(4)
	p.Predict.StepSeconds = 0.002
	for want, tells := range map[string]string{
		"process 0 has waited 70ms for the process of ranks 2 to 3 on h1: it is alive but makes no progress, for " +
			"example because a disk does not respond. The limit is --timeout or PLANC_TIMEOUT (50ms) plus ten times " +
			"the step": "",
		"process 1 reports 3 ranks, but it has 2": `{"Ranks":[{},{},{}]}`,
		"process 1 reports 0 ranks, but it has 2": `{}`,
	} {
		team := &launch.Team{Launch: &launch.Launch{Processes: 2, Ranks: 4, Count: 2}}
		crew, err := newCrew(p, 50*time.Millisecond, team)
		if err != nil {
			t.Fatal(err)
		}
		s := &silent{failed: make(chan error, 1)}
		if tells != "" {
			s.tells = []byte(tells)
		}
		team.Peers = s
		r := &member{job: &job{p: p, team: team, crew: crew, ctx: t.Context(),
			outputs: outputs{metrics: &report.Metrics{}}}}
		if err := r.exchangeReports(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		crew.close()
	}
}

// stepReport is a launch of two processes, of which the other says what a test wants.
type received struct {
	others
	say  func(call int) passReport
	own  []passReport
	call int
}

func (h *received) Exchange(own []byte) ([][]byte, error) {
	var x passReport
	if err := json.Unmarshal(own, &x); err != nil {
		return nil, err
	}
	h.own = append(h.own, x)
	h.call++
	other := h.say(h.call)
	other.Ranks = make([]rank.Report, 1)
	b, err := json.Marshal(other)
	return [][]byte{own, b}, err
}

// In a team no process begins a step before all have their batch, and a request to stop that one of them hears while it
// waits stops all before the same step.
func TestTeamWaitsForTheLastBatch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		say   func(call int) passReport
		hangs bool // this process's disk
		asked bool // this process is
		err   error
		calls int
	}{
		{"the other is late twice", func(call int) passReport {
			return passReport{Late: call < 3}
		}, false, false, nil, 3},
		{"the other is asked to stop while it is late", func(call int) passReport {
			return passReport{Late: true, Stop: call == 2}
		}, false, false, feed.ErrStopRequested, 2},
		{"this one is late, and the other is asked to stop", func(call int) passReport {
			return passReport{Stop: call == 2}
		}, true, false, feed.ErrStopRequested, 2},
		{"this one is late and asked to stop", func(int) passReport {
			return passReport{}
		}, true, true, feed.ErrStopRequested, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := idle(2)
			peers := &received{say: tt.say}
			team := &launch.Team{Launch: &launch.Launch{Processes: 2, Ranks: 2, Count: 1}, Peers: peers}
			crew, err := newCrew(p, 0, team)
			if err != nil {
				t.Fatal(err)
			}
			defer crew.close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.asked {
				cancel()
			}
			h := &zeros{hangs: tt.hangs, over: make(chan struct{})}
			from, _ := feed.Readers(h, &p.ProgramData)
			f := feed.New(from, 0, 96, &p.Batch, 8, 1)
			defer f.Stop()
			defer close(h.over)
			if !tt.hangs {
				f.Wait(nil, time.Minute)
			}
			r := &member{job: &job{p: p, team: team, crew: crew, ctx: ctx,
				outputs: outputs{metrics: &report.Metrics{}}}}
			r.readFrom(f)
			_, err = r.nextBatch()
			if !errors.Is(err, tt.err) || peers.call != tt.calls {
				t.Errorf("%v after %d exchanges, want %v after %d", err, peers.call, tt.err, tt.calls)
			}
			for _, x := range peers.own {
				if x.Late != tt.hangs {
					t.Errorf("this process says late %v, want %v", x.Late, tt.hangs)
				}
			}
		})
	}
}

// A batch that one process cannot read stops all before the step that needs it, so that its state can be saved; that
// process has the cause. A batch that is read ahead and not needed any more stops nobody.
func TestTeamStopsForABatchThatFails(t *testing.T) {
	lost := errors.New("data: train.bin: input/output error")
	for _, tt := range []struct {
		name  string
		done  int // steps
		stops bool
	}{{"a batch that is needed", 3, true}, {"after the last step", 12, false}} {
		p := idle(2)
		peers := &received{say: func(int) passReport { return passReport{} }}
		team := &launch.Team{Launch: &launch.Launch{Processes: 2, Ranks: 2, Count: 1}, Peers: peers}
		crew, err := newCrew(p, 0, team)
		if err != nil {
			t.Fatal(err)
		}
		from, _ := feed.Readers(&zeros{err: lost}, &p.ProgramData)
		f := feed.New(from, 0, 96, &p.Batch, 8, 1)
		f.Wait(nil, time.Minute)
		r := &member{rows: f, job: &job{p: p, team: team, crew: crew, ctx: t.Context(),
			outputs: outputs{metrics: &report.Metrics{}},
			total:   12, done: progress{step: tt.done}}}
		r.readFrom(f)
		err = r.exchangeReports()
		if err != nil {
			t.Fatal(err)
		}
		if got := peers.own[0]; got.Stop != tt.stops || r.isStopRequested() != tt.stops {
			t.Errorf("%s: this process says %+v, halted %v", tt.name, got, r.isStopRequested())
		}
		if err := r.ioError(); errors.Is(err, lost) != tt.stops {
			t.Errorf("%s: the cause is %v", tt.name, err)
		}
		f.Stop()
		crew.close()
	}
}
