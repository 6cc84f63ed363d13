//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// step holds the words of steps on both sides, and the graph. The host's side of a step is a slot. There
// are three: while one step runs, the next is launched, and the end time of the previous one is still
// needed.
type step struct {
	words   cuda.Memory // of the host and the device, for the running step
	offered cuda.Memory // of the host, for the next step
	slots   [3]slot

	multipliers []float64 // of learning rates
	first       int       // index of the words of stepwords.go; the rates of the multipliers come before

	launched int // number of steps launched
	received int // number of steps whose results were received

	shared    bool        // the ranks meet on the host: no graph is captured
	graph     *cuda.Graph // of a step
	capturing bool
	stale     bool // the graph has too few rounds for a router
}

// slot is the host's memory for a step.
type slot struct {
	offered, words cuda.Pinned
	first          int         // as in step
	from, to       *cuda.Event // mark the begin and the end of the step
	follows        bool        // launched before the results of the previous step were received
}

// open allocates the words and events.
func (s *step) open(d *device, m *machine) (err error) {
	s.shared = m.shared // the ranks meet on the host
	err = checkUpdateTypes(d.rank.Program.TensorTypes())
	if err != nil {
		return err
	}
	s.multipliers = learningRateMultipliers(d.rank.Program)
	s.first = len(s.multipliers) * multiplierWords
	all, offered := (s.first+hostWords+resultWords)*8, 2*(s.first+offeredWords)*8
	s.words, s.offered = d.table(all), d.table(offered)
	for i := range s.slots {
		sl := &s.slots[i]
		sl.offered, err = d.pin(offered)
		if err != nil {
			return err
		}
		sl.words, err = d.pin(all)
		if err != nil {
			return err
		}
		clear(sl.words.Slice())
		sl.first = s.first
		sl.from, err = cuda.NewEvent(true)
		if err != nil {
			return err
		}
		sl.to, err = cuda.NewEvent(true)
		if err != nil {
			return err
		}
	}
	return nil
}

// forget closes the graph.
func (s *step) forget() {
	if s.graph != nil {
		_ = s.graph.Close()
		s.graph = nil
	}
}

func (s *step) close() {
	for _, sl := range s.slots {
		closeEvents([]*cuda.Event{sl.from, sl.to})
	}
}

// value returns the device address of a word of the host.
func (s *step) value(i int) cuda.Pointer { return s.words.Pointer + cuda.Pointer((s.first+i)*8) }

// result returns the device address of a word of the device.
func (s *step) result(i int) cuda.Pointer { return s.value(hostWords + i) }

// rates returns the device address of the optimizer's rates of an update.
func (s *step) rates(u *rt.Update) cuda.Pointer {
	decayed, plain := decayRates, plainRates
	if i, found := slices.BinarySearch(s.multipliers, u.Rate); found {
		decayed = i*multiplierWords - s.first
		plain = decayed + rateCount
	}
	if u.Decay {
		return s.value(decayed)
	}
	return s.value(plain)
}

// results returns the memory of the device's words.
func (s *step) results() cuda.Memory { return s.words.At(int64(s.first+hostWords)*8, resultWords*8) }

// clear resets the device's words.
func (s *step) clear(l *workStream) {
	rt.Check(l.stream.Fill(s.results(), 0))
}

// Step launches a step: the first one call by call; the second one is captured; later ones replay the
// graph.
func (d *device) Step(work func()) {
	defer d.begins("the launch of a step")()
	s := &d.step
	sl := &s.slots[s.launched%len(s.slots)]
	sl.follows = s.launched > s.received
	rt.Check(d.compute.stream.Record(sl.from))
	writeWords(sl.offered.Slice(), d.rank, s.multipliers)
	rt.Check(d.uploads.stream.Upload(s.offered, sl.offered))
	if !sl.follows {
		s.clear(d.compute) // an evaluation may have left results
	}
	d.arrive(func() {
		n := s.first + offeredWords
		d.run("choose", "i32", 1, n, d.args().Pointer(s.words.Pointer).Pointer(s.offered.Pointer).
			Pointer(s.result(skipped)).Pointer(s.result(retry)).Int32(int32(n)))
	})
	d.launchWork(work)
	rt.Check(d.compute.stream.Download(sl.words, s.words))
	d.routers.download(d, s.launched%len(s.slots))
	rt.Check(d.compute.stream.Record(sl.to))
	s.launched++
	if d.firstStep {
		rt.Check(d.choices.Save())
	}
	d.firstStep = false
}

// launchWork enqueues the step's work.
func (d *device) launchWork(work func()) {
	s := &d.step
	if s.launched == 0 || s.shared || s.stale {
		s.forget()
		s.stale, d.routers.calls = false, d.routers.calls[:0]
		d.begin(work)
		return
	}
	if s.graph == nil {
		d.capture(work)
	}
	rt.Check(d.compute.stream.Replay(s.graph))
}

// capture captures the graph of a step.
func (d *device) capture(work func()) {
	s := &d.step
	rt.Check(d.routers.prepare(d))
	s.capturing = true
	defer func() { s.capturing = false }()
	var err error
	s.graph, err = d.compute.stream.Capture(func() error {
		d.begin(work)
		return nil
	})
	rt.Check(err)
}

// CanLaunchAhead reports whether the next step can be launched before the last one has ended. This requires a graph.
func (d *device) CanLaunchAhead() bool { return d.step.graph != nil && !d.step.stale }

// AwaitStep waits for the oldest step whose results have not been received, and returns them.
func (d *device) AwaitStep() (h rt.StepResult) {
	s := &d.step
	sl := &s.slots[s.received%len(s.slots)]
	d.await("the oldest running step", sl.to.Synchronize)
	from := sl.from
	if sl.follows {
		from = s.slots[(s.received+len(s.slots)-1)%len(s.slots)].to
	}
	var err error
	h.Seconds, err = sl.to.Since(from)
	rt.Check(err)
	d.longestStep.Store(math.Float64bits(max(h.Seconds, math.Float64frombits(d.longestStep.Load()))))
	at := s.received % len(s.slots)
	s.received++
	x, r := sl.results(), d.rank
	h.Retry = x[retry] != 0
	if h.Retry {
		s.stale = true
		return h
	}
	if s.graph != nil { // otherwise the host has counted
		rt.ClearCounts(r)
		d.routers.report(d, at)
	}
	rt.AddStepAux(r, x[auxSum])
	r.LossSum, r.Norm, r.Clip, r.Skip = x[lossSum], x[clipped], x[clipped+1], x[skipped] != 0
	return h
}

// word returns a word and those after it.
func (sl *slot) word(i int) []byte { return sl.words.Slice()[(sl.first+i)*8:] }

// results returns the words that the device wrote for the slot's step.
func (sl *slot) results() (x [resultWords]float64) {
	for i := range x {
		x[i] = getFloat(sl.word(hostWords + i))
	}
	return x
}

// LastCompleted returns the number of the last step whose words have arrived.
func (d *device) LastCompleted() (n int) {
	for i := range d.step.slots {
		n = max(n, int(binary.NativeEndian.Uint64(d.step.slots[i].word(stepNumber))))
	}
	return n
}

// Infer runs forward passes.
func (d *device) Infer(work func()) {
	defer d.begins("the launch of an evaluation")()
	s := &d.step
	d.arrive(func() {})
	d.begin(work)
	sl := &s.slots[s.launched%len(s.slots)] // slot of the next step
	host := sl.words.At(int64(s.first+hostWords)*8, resultWords*8)
	rt.Check(d.compute.stream.Download(host, s.results()))
	d.await("an evaluation", d.compute.stream.Synchronize)
	d.rank.LossSum = sl.results()[lossSum]
}

// begin enqueues the work of a step or an evaluation. Later work on the compute stream waits for all of it.
func (d *device) begin(work func()) {
	d.step.clear(d.compute)
	d.drops.drawKeys(&d.executor, d.step.value(seed))
	for _, p := range d.pipes {
		p.reset()
	}
	for _, c := range d.commByLine {
		c.BeginStep()
	}
	work()
	d.joinStreams()
}
