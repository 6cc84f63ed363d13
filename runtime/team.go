package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/visible"
)

// Team is the launch that a run is part of. Every process of it does the whole run in step with the others: it reads
// each batch, decides what comes next, and knows of all ranks what is to be known; but only its own have a device. What
// the processes do not all see (a rank's loss, a signal) they tell each other after each step. The first process alone
// writes metrics and checkpoints and speaks to people.
type Team struct {
	*launch.Launch
	Peers Peers // nil for a process alone
}

// Peers are a launch's processes that have met; all make the same calls in the same order. When one of them fails,
// calls return that error.
type Peers interface {
	Gather(own []byte) ([][]byte, error)   // of all processes, to the first alone
	Broadcast(b []byte) ([]byte, error)    // of the first, to all
	Exchange(own []byte) ([][]byte, error) // of all, to all
	WaitingFor() string                    // whom a call waits for now, for people; "" for nobody
	Fail(err error)                        // has all fail
	Done() <-chan struct{}                 // closed when one has failed
	Err() error
	Close()
}

// joinWithin is how long processes wait for each other to come, unless a flag says it.
const joinWithin = 10 * time.Minute

// isFirst tells whether this process writes.
func (t *Team) isFirst() bool { return t == nil || t.Process == 0 }

// launched says which part of a launch the process is.
func launched(l *launch.Launch, within time.Duration) Option {
	return func(o *options) { o.launch, o.joinWithin = l, within }
}

// join meets the other processes.
func (r *run) join(ctx context.Context) (err error) {
	l := r.o.launch
	if l == nil {
		l = launch.Alone(r.p.mesh().Size())
		r.warnAlone()
	}
	r.team, r.res.Here = &Team{Launch: l}, l.Count
	switch {
	case l.Processes == 1:
		return nil
	case r.o.onTensors != nil:
		return exitf(ExitCannot, "rt.OnTensors sees the tensors of one process, and %s has started %d", l.By,
			l.Processes)
	}
	r.report.info(fmt.Sprintf("%s: process %d of %d, with %d of %d ranks; joining at %s", r.p.Name, l.Process,
		l.Processes, l.Count, l.Ranks, l.Addr),
		"join", "process", l.Process, "processes", l.Processes, "address", l.Addr)
	within := r.o.joinWithin
	if within <= 0 {
		within = joinWithin
	}
	r.team.Peers, err = r.p.Devices.Meet(ctx, l, r.p.Hash, r.o.common(), within, r.joinReporter())
	return err
}

// warnAlone warns if a launcher says that this process is one of several: of programs that call Run, only Main obeys or
// refuses that.
func (r *run) warnAlone() {
	what := launch.Several(os.LookupEnv)
	_, err := launch.Resolve(launch.Flags{}, r.p.mesh().Size(), os.LookupEnv)
	if u := (*launch.Unobeyed)(nil); what == "" && errors.As(err, &u) {
		what = fmt.Sprintf("%s=%s (%s)", u.Name, u.Value, u.By)
	}
	if what != "" {
		r.report.warn(what+" says that this process is one of several, and Run trains in this process alone: each "+
			"process trains a model of its own", "launcher", what)
	}
}

// joinReporter returns what reports how the joining goes, on every process: one that does not come to the others can
// only say so itself.
func (r *run) joinReporter() func(string) {
	o := r.o
	o.launch = nil
	own := newReport(&o)
	return func(text string) { own.info(r.p.Name+": "+text, "join", "text", text) }
}

// common is what all processes of a launch are to be started with, for people.
func (o *options) common() string {
	words := []string{}
	for _, s := range o.sets {
		if !strings.HasPrefix(s.path, "data.") && s.path != dataOnly { // paths may differ from node to node
			words = append(words, fmt.Sprintf("%s=%v", s.path, s.value))
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// launchInputs is what all processes must have alike, each for people.
type launchInputs struct {
	Data     string // what is trained on, by its contents
	Files    string // and where it lies, which may differ
	Steps    int
	Settings string // digest
}

// checkAgreement wants all processes to have the same data and length of training.
func (r *run) checkAgreement() error {
	if r.team.Peers == nil {
		return nil
	}
	s := r.s
	s.Dir, s.Data = "", DataSettings{}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	own := launchInputs{r.dataID(), "", r.total, hex.EncodeToString(sum[:6])}
	if r.files != nil {
		own.Files = fileNames(r.s.Data.Train) + ", " + r.files.String()
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
			return &ExitError{ExitInput, err}
		}
	}
	return nil
}

// checkEqual returns in what process i differs from process 0, nil if in nothing.
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

// fileNames names files, the first of them.
func fileNames(files []File) string {
	const most = 3
	var names []string
	for _, f := range files[:min(most, len(files))] {
		names = append(names, f.Path)
	}
	if n := len(files) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// data names what is trained on.
func (a *launchInputs) data() string {
	files := visible.Text(a.Files)
	if files == "" {
		files = "a source of its own"
	}
	return fmt.Sprintf("%s (digest %s)", files, visible.Text(a.Data))
}

// guardTeam has all processes fail when a rank here does, and the ranks here when another process does.
func (r *run) guardTeam() {
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

// failTeam has all fail with an error, unless that only says that another process has failed: then that one's own
// reason is on its way.
func failTeam(p Peers, err error) {
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

// reasonWithin is how long the reason may be on its way: ranks are asked once a second.
const reasonWithin = 3 * time.Second

// leaveTeam ends what joins this process to the others. err is that of the run; the one that is returned is of whoever
// failed first.
func (r *run) leaveTeam(err error) error {
	close(r.ended)
	if r.team == nil || r.team.Peers == nil {
		return err
	}
	var exit *ExitError
	// all end so, each by itself
	agreed := err == nil || errors.As(err, &exit) && (exit.Code == ExitOnRequest || exit.Code == ExitNonfinite)
	if !agreed {
		failTeam(r.team.Peers, err)
		if r.team.Peers.Err() != nil && exit == nil {
			err = r.team.Peers.Err()
		}
		if r.crew != nil { // devices may be at a step whose peers are gone: they are not to wait for its end
			r.crew.world.Fail(err)
		}
	}
	r.team.Peers.Close()
	return err
}

// passReport is what a process tells of its ranks after each pass. Numbers are their bits: JSON knows no infinities.
type passReport struct {
	Stop  bool // it was asked to, or an I/O error ends it
	Late  bool // its next batch is not ready
	Ranks []rankReport
}

type rankReport struct {
	Loss, Norm, Tokens, Aux uint64
	Skip, Reduced           bool
	Layers                  []layerReport `json:",omitempty"`
}

type layerReport struct {
	Segment, Layer int
	Choices        []int64
	Dropped        int64
	Passes, Rounds int
}

// rankReport is what others are told of a rank.
func (r *Rank) rankReport() rankReport {
	x := rankReport{math.Float64bits(r.LossSum), math.Float64bits(r.Norm), math.Float64bits(r.Tokens),
		math.Float64bits(r.experts.aux), r.Skip, r.reduced, nil}
	for id, l := range r.experts.layers {
		x.Layers = append(x.Layers, layerReport{id.segment, id.layer, l.choices, l.dropped, l.passes, l.rounds})
	}
	slices.SortFunc(x.Layers, func(a, b layerReport) int { return (a.Segment-b.Segment)<<20 + a.Layer - b.Layer })
	return x
}

// waitStep takes what another process tells of a rank.
func (r *Rank) applyReport(x *rankReport) {
	r.LossSum, r.Norm, r.Tokens = math.Float64frombits(x.Loss), math.Float64frombits(x.Norm),
		math.Float64frombits(x.Tokens)
	r.experts.aux, r.Skip, r.reduced = math.Float64frombits(x.Aux), x.Skip, x.Reduced
	r.experts.layers = map[layerID]*layerLoad{}
	for _, l := range x.Layers {
		r.experts.layers[layerID{l.Segment, l.Layer}] = &layerLoad{l.Choices, l.Dropped, l.Passes, l.Rounds}
	}
}

// exchangeReports makes known in all processes what their ranks have found, and whether one was asked to stop.
func (r *run) exchangeReports() error {
	if r.team.Peers == nil {
		return nil
	}
	own := passReport{Late: r.feed != nil && r.feed.isLate()}
	own.Stop = r.ctx.Err() != nil || r.ioError() != nil // after Late: a batch that is there and failed is known to have
	for _, k := range r.crew.mine {
		own.Ranks = append(own.Ranks, k.rankReport())
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
			return fmt.Errorf("process %d tells of %d ranks, and it has %d", process, len(x.Ranks), each)
		}
		r.stopRequested, r.feedLate = r.stopRequested || x.Stop, r.feedLate || x.Late
		for i := range x.Ranks {
			if k := r.crew.ranks[at]; !r.crew.isLocal(k) {
				k.applyReport(&x.Ranks[i])
			}
			at++
		}
	}
	return nil
}

// longSteps is how many of the longest step are waited for besides the timeout: processes do not begin a step at the
// same moment.
const longSteps = 10

// reportTimeout is how long what the others tell after a pass is waited for. Process 0 hears of all, and hence is to
// give up first: it knows who is missing.
func (r *run) reportTimeout() time.Duration {
	step := max(r.p.Predict.StepSeconds, r.last.Seconds)
	if !(step < 1e8) { // what is not known, or would overflow
		step = 0
	}
	limit := r.crew.world.Timeout() + time.Duration(longSteps*step*float64(time.Second))
	if !r.team.isFirst() {
		limit += limit / 10
	}
	return limit
}

// failStuck ends the run because a process that lives tells nothing.
func (r *run) failStuck() {
	who := r.team.Peers.WaitingFor()
	if who == "" {
		return // it has just come
	}
	r.team.Peers.Fail(fmt.Errorf("process %d has waited %v for the process of %s: it lives, and does not go on, as "+
		"when a disk does not answer. "+
		"--timeout or PLANC_TIMEOUT (%v) and ten times the step are how long is waited", r.team.Process,
		r.reportTimeout().Round(time.Millisecond), who, r.crew.world.Timeout()))
}

// isStopRequested tells whether the run was asked to stop: in all processes at once.
func (r *run) isStopRequested() bool {
	if r.team.Peers == nil {
		return r.ctx.Err() != nil || r.metrics.err != nil
	}
	return r.stopRequested
}
