package comm

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultTimeout is how long a collective waits for a missing rank.
const DefaultTimeout = 10 * time.Minute

// Stream is one of a rank's two sequences of collectives. Collectives of different streams are independent.
type Stream uint8

const (
	Main    Stream = iota // collectives issued by the rank's compute goroutine
	Overlap               // collectives issued by its communication goroutine, which overlap compute
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
	return &World{mesh: mesh, timeout: timeout, done: make(chan struct{}), channels: map[string]*channel{}}
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
	ch *channel
	me int
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
	return &Group{ch: ch, me: me}
}

// report calls Watch with a call.
func (g *Group) report(op string, bytes int) {
	if watch := g.ch.world.Watch; watch != nil {
		watch(Call{Rank: g.ch.ranks[g.me], Op: op, Group: g.ch.name, Ranks: g.Size(), Bytes: bytes})
	}
}

// Size returns the number of members.
func (g *Group) Size() int { return len(g.ch.ranks) }

// Index returns this rank's index among the members.
func (g *Group) Index() int { return g.me }

// Ranks returns the members' ranks in order. The caller must not change it.
func (g *Group) Ranks() []int { return g.ch.ranks }

// Name returns the group's atoms joined by "·".
func (g *Group) Name() string { return g.ch.name }
