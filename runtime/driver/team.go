package driver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/settings"
	"github.com/planc-dev/planc/runtime/visible"
)

// joinWithin is the default time that processes wait for each other at the start.
const joinWithin = 10 * time.Minute

// join connects to the other processes.
func (r *member) join(ctx context.Context) (err error) {
	l := r.o.Launch
	if l == nil {
		l = launch.Alone(r.p.MeshSize())
		r.warnAlone()
	}
	r.team, r.res.Here = &launch.Team{Launch: l}, l.Count
	switch {
	case l.Processes == 1:
		return nil
	case r.o.OnTensors != nil:
		return exit.Errorf(exit.Cannot, "rt.OnTensors works in one process only, but %s has started %d", l.By,
			l.Processes)
	}
	r.report.Info(fmt.Sprintf("%s: process %d of %d, with %d of %d ranks; joining at %s", r.p.Name, l.Process,
		l.Processes, l.Count, l.Ranks, l.Addr),
		"join", "process", l.Process, "processes", l.Processes, "address", l.Addr)
	within := r.o.JoinWithin
	if within <= 0 {
		within = joinWithin
	}
	r.team.Peers, err = r.p.Devices.Meet(ctx, l, r.p.Hash, settings.CommonText(r.o.Changes), within, r.joinReporter())
	return err
}

// warnAlone warns if a launcher says that this process is one of several. A program that calls Run itself neither joins
// the others nor refuses to run, as Main does.
func (r *member) warnAlone() {
	what := launch.LauncherVariable(os.LookupEnv)
	_, err := launch.Resolve(launch.Flags{}, r.p.MeshSize(), os.LookupEnv)
	if u := (*launch.UnsupportedLauncher)(nil); what == "" && errors.As(err, &u) {
		what = fmt.Sprintf("%s=%s (%s)", u.Name, u.Value, u.By)
	}
	if what != "" {
		r.report.Warn(what+" says that this process is one of several, and Run trains in this process alone: each "+
			"process trains a model of its own", "launcher", what)
	}
}

// joinReporter returns a function that reports the progress of joining. It prints on every process, because a process
// that cannot reach the others can only report that itself.
func (r *member) joinReporter() func(string) {
	o := r.o
	o.Launch = nil
	own := o.printer()
	return func(text string) { own.Info(r.p.Name+": "+text, "join", "text", text) }
}

// launchInputs is what must be equal in all processes, in a form for people.
type launchInputs struct {
	Data     string // identifies the data by its contents
	Files    string // paths of the data, which may differ
	Steps    int
	Settings string // digest
}

// checkAgreement checks that all processes have the same data, settings and length of training.
func (r *member) checkAgreement() error {
	if r.team.Peers == nil {
		return nil
	}
	s := r.s
	s.Dir, s.Data = "", program.DataSettings{}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	own := launchInputs{r.data.id(), "", r.total, hex.EncodeToString(sum[:6])}
	if r.data.files != nil {
		own.Files = fileNames(r.s.Data.Train) + ", " + r.data.files.String()
	}
	b, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all, err := r.team.Peers.Exchange(b)
	if err != nil {
		return err
	}
	var first, other launchInputs
	for i, b := range all {
		if err := json.Unmarshal(b, &other); err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
		if i == 0 {
			first = other
		}
		if err := first.checkEqual(&other, i); err != nil {
			return exit.Wrap(exit.Input, err)
		}
	}
	return nil
}

// checkEqual returns an error that says how process i differs from process 0; nil if it does not.
func (a *launchInputs) checkEqual(o *launchInputs, i int) error {
	switch {
	case a.Data != o.Data:
		return fmt.Errorf("processes train on different data: process 0 on %s, and process %d on %s. Every process "+
			"needs the same data files, of the same contents: "+
			"give each the same --data, or copy the files again", a.data(), i, o.data())
	case a.Steps != o.Steps:
		return fmt.Errorf("processes train for different lengths: process 0 to step %d, and process %d to step %d. "+
			"Start all with the same flags", a.Steps, i, o.Steps)
	case a.Settings != o.Settings:
		return fmt.Errorf("processes train with different settings: their digest is %s in process 0, and %s in "+
			"process %d. Start all with the same flags and binary",
			visible.Text(a.Settings), visible.Text(o.Settings), i)
	}
	return nil
}

// fileNames lists the first files' names.
func fileNames(files []program.File) string {
	const limit = 3
	var names []string
	for _, f := range files[:min(limit, len(files))] {
		names = append(names, f.Path)
	}
	if n := len(files) - limit; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// data describes the training data.
func (a *launchInputs) data() string {
	files := visible.Text(a.Files)
	if files == "" {
		files = "its own rt.Source"
	}
	return fmt.Sprintf("%s (digest %s)", files, visible.Text(a.Data))
}

// guardTeam makes all processes fail when a rank of this process fails, and the ranks here when another process fails.
func (r *member) guardTeam() {
	p := r.team.Peers
	if p == nil {
		return
	}
	world := r.crew.world
	go func() {
		select {
		case <-p.Done():
			world.Fail(p.Err())
		case <-world.Done():
			failTeam(p, world.Err())
		case <-r.ended:
		}
	}()
}

// failTeam makes all processes fail with an error. If the error only says that another process has failed, it first
// waits for that process's own reason.
func failTeam(p launch.Peers, err error) {
	var e interface{ Elsewhere() bool }
	if errors.As(err, &e) && e.Elsewhere() {
		select {
		case <-p.Done():
			return
		case <-time.After(reasonWithin):
		}
	}
	p.Fail(err)
}

// reasonWithin is how long failTeam waits for the reason: ranks are polled once a second.
const reasonWithin = 3 * time.Second

// leaveTeam closes the connection to the other processes. err is this run's error. It returns the error of the process
// that failed first.
func (r *member) leaveTeam(err error) error {
	close(r.ended)
	if r.team == nil || r.team.Peers == nil {
		return err
	}
	if !isCommonEnd(err) {
		failTeam(r.team.Peers, err)
		var coded *exit.Error
		errors.As(err, &coded)
		if r.team.Peers.Err() != nil && coded == nil {
			err = r.team.Peers.Err()
		}
		if r.crew != nil { // do not wait for device work that needs peers that have ended
			r.crew.world.Fail(err)
		}
	}
	r.team.Peers.Close()
	return err
}

// isCommonEnd reports whether all processes end with a run's error, each by itself.
func isCommonEnd(err error) bool {
	var coded *exit.Error
	return err == nil || errors.As(err, &coded) && (coded.Code == exit.OnRequest || coded.Code == exit.Nonfinite)
}

// passReport is what a process sends about its ranks after each pass. Numbers are sent as bits, because JSON has no
// infinities.
type passReport struct {
	Stop bool // the process was asked to stop, or an I/O error ends it
	Late bool // its next batch is not ready
	Save bool // a checkpoint is due by the first process's clock
	// Written is the outcome of a checkpoint that the first process has written.
	Written *saveOutcome `json:",omitempty"`
	Ranks   []rank.Report
}

// exchangeReports exchanges the results of the ranks between all processes, and whether one was asked to stop.
func (r *member) exchangeReports() error {
	if r.team.Peers == nil {
		return nil
	}
	own := passReport{Late: r.feed != nil && r.feed.IsLate()}
	own.Stop = r.ctx.Err() != nil || r.ioError() != nil // read after Late: if the batch failed, that is now known
	own.Save, own.Written = r.team.IsFirst() && r.isOverdue(), r.saving.outcome
	for _, k := range r.crew.mine {
		own.Ranks = append(own.Ranks, k.Report())
	}
	b, err := json.Marshal(own)
	if err != nil {
		return err
	}
	late := time.AfterFunc(r.reportTimeout(), r.failStuck)
	all, err := r.team.Peers.Exchange(b)
	late.Stop()
	if err != nil {
		return err
	}
	at, each := 0, len(r.crew.ranks)/len(all)
	r.feedLate = false
	for process, b := range all {
		var x passReport
		if err := json.Unmarshal(b, &x); err != nil {
			return fmt.Errorf("process %d: %w", process, err)
		}
		if len(x.Ranks) != each {
			return fmt.Errorf("process %d reports %d ranks, but it has %d", process, len(x.Ranks), each)
		}
		r.stopRequested, r.feedLate = r.stopRequested || x.Stop, r.feedLate || x.Late
		r.saving.isTimeDue = r.saving.isTimeDue || x.Save
		if process == 0 && x.Written != nil {
			r.saving.agreed = cmp.Or(r.saving.outcome, x.Written)
		}
		for i := range x.Ranks {
			if k := r.crew.ranks[at]; !r.crew.isLocal(k) {
				k.ApplyReport(&x.Ranks[i])
			}
			at++
		}
	}
	return nil
}

// longSteps is how many times the longest step to wait in addition to the timeout, because processes do not begin a
// step at the same moment.
const longSteps = 10

// reportTimeout returns how long to wait for the other processes' reports after a pass. Process 0 receives from all and
// knows who is missing, so it gives up first.
func (r *member) reportTimeout() time.Duration {
	step := max(r.p.Predict.StepSeconds, r.last.Seconds)
	if !(step < 1e8) { // unknown, or would overflow
		step = 0
	}
	limit := r.crew.world.Timeout() + time.Duration(longSteps*step*float64(time.Second))
	if !r.team.IsFirst() {
		limit += limit / 10
	}
	return limit
}

// failStuck ends the run because a process is alive but sends no report.
func (r *member) failStuck() {
	who := r.team.Peers.WaitingFor()
	if who == "" {
		return // the report has just arrived
	}
	r.team.Peers.Fail(fmt.Errorf("process %d has waited %v for the process of %s: it is alive but makes no "+
		"progress, for "+
		"example because a disk does not respond. "+
		"The limit is --timeout or PLANC_TIMEOUT (%v) plus ten times the step", r.team.Process,
		r.reportTimeout().Round(time.Millisecond), who, r.crew.world.Timeout()))
}

// isStopRequested reports whether the run was asked to stop. All processes get the same answer before the same step.
func (r *member) isStopRequested() bool {
	if r.team.Peers == nil {
		return r.ctx.Err() != nil || r.metrics.Err() != nil
	}
	return r.stopRequested
}
