//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"math"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// step is what is said of steps, on both sides, and how they are done. The host's side of a step is a slot: while one
// step is under way the next is begun, and of the one before the host still wants to know when it ended.
type step struct {
	words   cuda.Memory // what the host says, and the device, of the step under way
	offered cuda.Memory // what the host says of the next
	slots   [3]slot
	begun   int // steps
	heard   int // of them

	shared    bool        // ranks meet on the host: nothing is captured
	graph     *cuda.Graph // of a step
	capturing bool
	stale     bool // the graph has too few rounds for a router
}

// slot is a step's place on the host.
type slot struct {
	offered, words cuda.Pinned
	from, to       *cuda.Event // its begin and its end
	follows        bool        // it was begun when the one before had not been heard of
}

// open makes room.
func (s *step) open(d *device, m *machine) (err error) {
	s.shared = m.shared // ranks meet on the host
	err = updates(d.rank.Program.Kept())
	if err != nil {
		return err
	}
	s.words, s.offered = d.table((values+results)*8), d.table(2*offered*8)
	for i := range s.slots {
		sl := &s.slots[i]
		sl.offered, err = d.pin(2 * offered * 8)
		if err != nil {
			return err
		}
		sl.words, err = d.pin((values + results) * 8)
		if err != nil {
			return err
		}
		clear(sl.words.Slice())
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

// forget ends the graph.
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

// value is where a word that the host says lies on the device.
func (s *step) value(i int) cuda.Pointer { return s.words.Pointer + cuda.Pointer(i*8) }

// result is where a number that the device says lies.
func (s *step) result(i int) cuda.Pointer { return s.value(values + i) }

// clear begins what the device says anew.
func (s *step) clear(l *line) {
	rt.Check(l.stream.Fill(s.words.At(values*8, results*8), 0))
}

// Step begins a step: the first call by call, the second as it is captured, the others again as they were captured.
func (d *device) Step(work func()) {
	defer d.begins("the beginning of a step")()
	s := &d.step
	sl := &s.slots[s.begun%len(s.slots)]
	sl.follows = s.begun > s.heard
	rt.Check(d.compute.stream.Record(sl.from))
	offer(sl.offered.Slice(), d.rank)
	rt.Check(d.copies.stream.Upload(s.offered, sl.offered))
	if !sl.follows {
		s.clear(d.compute) // what is left of an evaluation says nothing of a step
	}
	d.arrive(func() {
		d.run("choose", "i32", 1, offered, d.args().Pointer(s.words.Pointer).Pointer(s.offered.Pointer).
			Pointer(s.result(skipped)).Pointer(s.result(again)).Int32(offered))
	})
	d.steps(work)
	rt.Check(d.compute.stream.Download(sl.words, s.words))
	d.routers.download(d, s.begun%len(s.slots))
	rt.Check(d.compute.stream.Record(sl.to))
	s.begun++
}

// steps puts the step's work on streams.
func (d *device) steps(work func()) {
	s := &d.step
	if s.begun == 0 || s.shared || s.stale {
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

// capture makes the graph of a step.
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

// Ahead tells whether the next step can be begun before the last has ended: it can where it is a graph's.
func (d *device) Ahead() bool { return d.step.graph != nil && !d.step.stale }

// Hear waits for the first step that was not heard of.
func (d *device) Hear() (h rt.Heard) {
	s := &d.step
	sl := &s.slots[s.heard%len(s.slots)]
	d.await("the step that was begun first", sl.to.Synchronize)
	from := sl.from
	if sl.follows {
		from = s.slots[(s.heard+len(s.slots)-1)%len(s.slots)].to
	}
	var err error
	h.Seconds, err = sl.to.Since(from)
	rt.Check(err)
	d.longest.Store(math.Float64bits(max(h.Seconds, math.Float64frombits(d.longest.Load()))))
	at := s.heard % len(s.slots)
	s.heard++
	x, r := sl.results(), d.rank
	h.Again = x[again] != 0
	if h.Again {
		s.stale = true
		return h
	}
	if s.graph != nil { // else the host has counted
		rt.ForgetCounts(r)
		d.routers.tell(d, at)
	}
	rt.AddStepAux(r, x[auxSum])
	r.LossSum, r.Norm, r.Clip, r.Skip = x[lossSum], x[clipped], x[clipped+1], x[skipped] != 0
	return h
}

// results are what the device has said of the slot's step.
func (sl *slot) results() (x [results]float64) {
	host := sl.words.Slice()
	for i := range x {
		x[i] = getFloat(host[(values+i)*8:])
	}
	return x
}

// Ended is the number of the last step whose words have come.
func (d *device) Ended() (n int) {
	for _, sl := range d.step.slots {
		n = max(n, int(binary.NativeEndian.Uint64(sl.words.Slice()[number*8:])))
	}
	return n
}

// Infer does forward passes.
func (d *device) Infer(work func()) {
	defer d.begins("the beginning of an evaluation")()
	s := &d.step
	d.arrive(func() {})
	d.begin(work)
	sl := &s.slots[s.begun%len(s.slots)] // of a step to come
	host, memory := sl.words.At(values*8, results*8), s.words.At(values*8, results*8)
	rt.Check(d.compute.stream.Download(host, memory))
	d.await("an evaluation", d.compute.stream.Synchronize)
	d.rank.LossSum = sl.results()[lossSum]
}

// begin puts all of a step or an evaluation on streams; what comes behind it on the first comes behind all.
func (d *device) begin(work func()) {
	d.step.clear(d.compute)
	d.drawKeys()
	for _, p := range d.pipes {
		p.forget()
	}
	for _, c := range d.byLine {
		if c.local != nil {
			c.local.used = 0
		}
	}
	work()
	d.join()
}
