//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// communication connects a rank with others: communicators of lines, jobs of buckets, and pipes between
// stages.
type communication struct {
	executor
	commByLine   map[string]*comm // by line name; nil for a rank without peers
	pipes        map[string]*pipe
	jobs         [][jobKinds]*cuda.Event // by bucket: the event that its waiters wait for
	multiProcess bool                    // other processes have ranks too, which do not meet on this host
}

// comm is the communicator of a line's ranks: NCCL's or, if the ranks share a GPU, which NCCL does not
// support, one within this process. Its methods enqueue work on a stream like those of package cuda.
type comm struct {
	Rank, Ranks int
	nccl        *cuda.Comm
	local       *local
}

// AllReduce writes the reduction of every rank's count values at from to the address to of every rank. Both
// addresses may be equal.
func (c *comm) AllReduce(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type, op cuda.Reduction) error {
	if c.local != nil {
		return c.local.allReduce(s, to, from, count, t, op)
	}
	return c.nccl.AllReduce(s, to, from, count, t, op)
}

// ReduceScatter writes this rank's count values of the sum to the address to.
func (c *comm) ReduceScatter(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	if c.local != nil {
		return c.local.reduceScatter(s, to, from, count, t)
	}
	return c.nccl.ReduceScatter(s, to, from, count, t, cuda.Sum)
}

// AllGather writes the count values of every rank's from to the address to.
func (c *comm) AllGather(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	if c.local != nil {
		return c.local.allGather(s, to, from, count, t)
	}
	return c.nccl.AllGather(s, to, from, count, t)
}

// Send sends count values to a peer, which must call Receive.
func (c *comm) Send(s *cuda.Stream, from cuda.Pointer, count int, t cuda.Type, peer int) error {
	if c.local != nil {
		return c.local.send(s, from, count*typeSize(t), peer)
	}
	return c.nccl.Send(s, from, count, t, peer)
}

// Receive receives the values that a peer sends.
func (c *comm) Receive(s *cuda.Stream, to cuda.Pointer, count int, t cuda.Type, peer int) error {
	if c.local != nil {
		return c.local.receive(s, to, count*typeSize(t), peer)
	}
	return c.nccl.Receive(s, to, count, t, peer)
}

// Group combines the sends and receives that f calls into one operation on a stream. All ranks must call
// it.
func (c *comm) Group(s *cuda.Stream, f func() error) error {
	if c.local != nil {
		return c.local.together(s, f)
	}
	return c.nccl.Group(f)
}

// typeSize returns the bytes of a value.
func typeSize(t cuda.Type) int {
	return map[cuda.Type]int{cuda.Int32: 4, cuda.Float16: 2, cuda.Float32: 4, cuda.Float64: 8, cuda.BFloat16: 2}[t]
}

// split returns the communicator of this rank's part of a line, which all ranks split at once. It returns
// nil if the rank has no peer.
func (d *communication) split(ctx context.Context, m *machine, name string, ranks []int) (*comm, error) {
	if m.shared {
		if len(ranks) < 2 {
			return nil, nil
		}
		me := slices.Index(ranks, d.rank.ID)
		return &comm{Rank: me, Ranks: len(ranks), local: newLocal(&d.executor, m.hub(name, ranks), me)}, nil
	}
	if len(d.comms) == 0 {
		return nil, nil
	}
	color, key := cuda.NoColor, 0 // a rank without peers takes part too, because other ranks may share a line
	if len(ranks) > 1 {
		color, key = slices.Min(ranks), slices.Index(ranks, d.rank.ID)
	}
	c, err := d.comms[0].Split(ctx, color, key)
	if err != nil || c == nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("%s of ranks %v", d.label(name), ranks)
	d.comms = append(d.comms, c)
	return &comm{Rank: c.Rank, Ranks: c.Ranks, nccl: c}, nil
}

// label returns a line's name for messages: for a group its axes.
func (d *communication) label(name string) string {
	for i, g := range d.rank.Program.Groups {
		if name == rt.MainLine(i) {
			return strings.Join(g.Axes, "·")
		}
	}
	return name
}

// errPeerFailed is the error of a rank that waits for others after one of them has failed.
var errPeerFailed = errors.New("gpu: another rank has failed")

// group returns the communicator of one of the program's groups, for the compute stream. It returns nil if
// the rank is the only member.
func (d *communication) group(group int) *comm {
	if group < 0 {
		return nil
	}
	return d.commByLine[rt.MainLine(group)]
}
