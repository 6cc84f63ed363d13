package timeline

import "time"

// Part is a part of a step's time. The names of parts are those of a prediction's time, apart from data.
type Part uint8

// The parts of a step, as a rank's compute goroutine spends it.
const (
	Other     Part = iota // what no other part has: token count, loss and norm collectives, waiting for the last rank
	Compute               // forward and backward passes
	Recompute             // forward passes that a backward pass repeats
	TPComm                // collectives of tensor parallelism
	CPComm                // of context parallelism
	EPComm                // between experts
	PPComm                // copying messages between pipeline stages
	PPBubble              // waiting for messages between pipeline stages
	DPComm                // waiting for gradients and parameters that are reduced or gathered concurrently
	Optimizer             // gradient norm and update
	Data                  // waiting for the batch and placing it
	Parts                 // number of parts
)

// names are the parts' names in metrics.
var names = [Parts]string{"other", "compute", "recompute", "tp_comm", "cp_comm", "ep_comm", "pp_comm", "pp_bubble",
	"dp_comm", "optimizer", "data"}

func (p Part) String() string { return names[p] }

// IsPass reports whether the part is a forward or backward pass.
func (p Part) IsPass() bool { return p == Compute || p == Recompute }

// Work is the parts in which a rank does its own work, and neither communicates nor waits.
var Work = []Part{Compute, Recompute, Optimizer}

// Track is the time of one goroutine. Only that goroutine may use it; others may read it while the goroutine waits for
// them. The zero value is ready.
type Track struct {
	part  Part
	since int64 // time of the last change of the part
	ns    [Parts]int64
	wait  int64 // in collectives and messages, for other ranks
	open  int   // 1 + index of the innermost open span, 0: none

	recording bool
	spans     []Span
	_         [64]byte // keeps the tracks of different goroutines on different cache lines
}

// Span is a piece of work of a goroutine. Spans of a track are nested.
type Span struct {
	Kind         string // forward, all_reduce, ...
	Object       string // what it works on: a segment, a group; "" if the kind says all
	At           int    // number of the layer, bucket or step; -1: none
	Part         Part
	Micro        int // micro-batch; -1: none
	Ranks, Bytes int // of a communication
	Start, End   int64
	Arrived      int64 // of a communication: when all ranks had arrived; 0: unknown
}

// Mark is the state to which End returns.
type Mark struct {
	part Part
	open int
	at   int64
}

var base = time.Now()

// Now returns the nanoseconds since the process started.
func Now() int64 { return int64(time.Since(base)) }

// Reset begins a step: it clears the times and switches to the part other.
func (t *Track) Reset() {
	t.ns, t.wait, t.part, t.since = [Parts]int64{}, 0, Other, Now()
}

// Stop ends a step.
func (t *Track) Stop() {
	at := Now()
	t.ns[t.part] += at - t.since
	t.since = at
}

// Begin switches to a part, until End.
func (t *Track) Begin(p Part) Mark {
	at := Now()
	t.ns[t.part] += at - t.since
	m := Mark{t.part, t.open, at}
	t.part, t.since = p, at
	if t.recording {
		t.spans = append(t.spans, Span{Part: p, At: -1, Micro: -1, Start: at})
		t.open = len(t.spans)
	}
	return m
}

// Span returns the span of the last Begin for its description; nil if the track does not record.
func (t *Track) Span() *Span {
	if t.open == 0 {
		return nil
	}
	return &t.spans[t.open-1]
}

// End ends what Begin began, and switches back.
func (t *Track) End(m Mark) {
	at := Now()
	t.ns[t.part] += at - t.since
	t.part, t.since = m.part, at
	if t.open > 0 {
		t.spans[t.open-1].End = at
		t.open = m.open
	}
}

// Part returns the current part.
func (t *Track) Part() Part { return t.part }

// Arrive records that all ranks of the communication have arrived that this rank has waited for since Begin.
func (t *Track) Arrive(m Mark) {
	at := Now()
	t.wait += at - m.at
	if t.open > 0 {
		t.spans[t.open-1].Arrived = at
	}
}

// Split is Arrive, and switches from the part that Begin began to another.
func (t *Track) Split(m Mark, p Part) {
	t.Arrive(m)
	at := Now()
	t.ns[t.part] += at - t.since
	t.part, t.since = p, at
}

// Seconds returns the time of a part.
func (t *Track) Seconds(p Part) float64 { return float64(t.ns[p]) / 1e9 }

// Add adds seconds to a part.
func (t *Track) Add(p Part, seconds float64) { t.ns[p] += int64(seconds * 1e9) }

// Wait returns the seconds in which the goroutine waited for other ranks.
func (t *Track) Wait() float64 { return float64(t.wait) / 1e9 }

// Record starts or ends recording of spans.
func (t *Track) Record(on bool) { t.recording = on }

// Spans returns the recorded spans, in the order in which they began.
func (t *Track) Spans() []Span { return t.spans }
