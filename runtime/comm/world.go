package comm

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/runtime/timeline"
)

// DefaultTimeout is how long a collective waits for a missing rank.
const DefaultTimeout = 10 * time.Minute

// Stream is one of a rank's two sequences of collectives. Collectives of different streams are independent.
type Stream uint8

const (
	Main    Stream = iota // collectives issued by the rank's compute goroutine
	Overlap               // collectives issued by its communication goroutine, which overlap compute
	streams = iota
)

func (s Stream) String() string { return [...]string{Main: "main", Overlap: "overlap"}[s] }

// World is one run of all ranks of a mesh.
type World struct {
	mesh    Mesh
	timeout time.Duration

	// Watch, if not nil, is called once per rank and collective, and once per message sent or received. It must be set
	// before the ranks start, and is called concurrently by all of them.
	Watch func(Call)

	failed atomic.Bool
	done   chan struct{} // closed by the first Fail
	cause  error         // readable after done is closed

	tracks []timeline.Track // of each rank, by stream

	mu       sync.Mutex
	channels map[string]*channel
	pipes    map[string]*Pipe
}

// Call is one rank's part in a communication.
type Call struct {
	Rank  int
	Op    string // all_reduce, reduce_scatter, all_gather, all_to_all, send or receive
	Group string // the group's mesh axes joined by "·"; for send and receive, the message's name
	Ranks int    // size of the group
	Bytes int    // size of the whole buffer: a rank's operand, or the result of an all_gather
}

// NewWorld starts a run. A timeout of 0 is DefaultTimeout.
func NewWorld(mesh Mesh, timeout time.Duration) *World {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &World{mesh: mesh, timeout: timeout, done: make(chan struct{}), channels: map[string]*channel{},
		tracks: make([]timeline.Track, streams*mesh.Size())}
}

// Timeout returns how long a collective waits for a missing rank.
func (w *World) Timeout() time.Duration { return w.timeout }

// Fail ends the run: every rank that waits in a collective returns. Only the first error counts.
func (w *World) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed.Load() {
		return
	}
	w.cause = err
	w.failed.Store(true)
	close(w.done)
}

// Done returns a channel that is closed when the run has failed.
func (w *World) Done() <-chan struct{} { return w.done }

// Err returns the error of the first Fail, or nil.
func (w *World) Err() error {
	if !w.failed.Load() {
		return nil
	}
	<-w.done
	return w.cause
}

// Group is one rank's end of a collective channel. It is used by one goroutine at a time.
type Group struct {
	ch    *channel
	me    int
	track *timeline.Track // of the rank and stream
	part  timeline.Part   // of a step that collectives in a pass are counted under
	mark  timeline.Mark   // of the current collective
}

// Join returns rank's end of the group over atoms on a stream. Members that join with the same atoms in
// the same order share a channel.
func (w *World) Join(rank int, atoms []string, stream Stream) (*Group, error) {
	ranks, me, err := w.mesh.Members(rank, atoms)
	if err != nil {
		return nil, err
	}
	return w.join(strings.Join(atoms, "·"), ranks, me, stream), nil
}

// join returns member me's end of the channel between ranks.
func (w *World) join(name string, ranks []int, me int, stream Stream) *Group {
	key := fmt.Sprint(name, " ", ranks[0], " ", stream)
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channels[key]
	if ch == nil {
		ch = newChannel(w, name, ranks)
		w.channels[key] = ch
	}
	return &Group{ch: ch, me: me, track: w.Track(ranks[me], stream), part: partOf(name, stream)}
}

// Track returns the track of the goroutine that issues a rank's collectives of a stream.
func (w *World) Track(rank int, stream Stream) *timeline.Track {
	return &w.tracks[streams*rank+int(stream)]
}

// partOf returns the part of a step that collectives over atoms in a pass are counted under.
func partOf(name string, stream Stream) timeline.Part {
	if stream == Overlap {
		return timeline.DPComm
	}
	part, atoms := timeline.EPComm, strings.Split(name, "·")
	for _, k := range []struct {
		axis string
		part timeline.Part
	}{{"cp", timeline.CPComm}, {"tp", timeline.TPComm}} {
		if !slices.ContainsFunc(atoms, func(a string) bool { return !strings.HasPrefix(a, k.axis) }) {
			part = k.part
		}
	}
	return part
}

// begin starts a collective. Outside of a pass it stays in the current part of the step.
func (g *Group) begin(op string, bytes int) {
	part := g.track.Part()
	if part.IsPass() {
		part = g.part
		if op == "all_to_all" && part == timeline.TPComm {
			part = timeline.EPComm
		}
	}
	g.mark = g.track.Begin(part)
	if s := g.track.Span(); s != nil {
		s.Kind, s.Object, s.Ranks, s.Bytes = op, "over "+g.ch.name, g.Size(), bytes
	}
	if watch := g.ch.world.Watch; watch != nil {
		watch(Call{Rank: g.ch.ranks[g.me], Op: op, Group: g.ch.name, Ranks: g.Size(), Bytes: bytes})
	}
}

// end waits until all members have finished the collective.
func (g *Group) end(op string) error {
	err := g.ch.meet(g.me, op)
	g.track.End(g.mark)
	return err
}

// Size returns the number of members.
func (g *Group) Size() int { return len(g.ch.ranks) }

// Index returns this rank's index among the members.
func (g *Group) Index() int { return g.me }

// Ranks returns the members' ranks in order. The caller must not change it.
func (g *Group) Ranks() []int { return g.ch.ranks }

// Name returns the group's atoms joined by "·".
func (g *Group) Name() string { return g.ch.name }
