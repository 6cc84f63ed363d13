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

// comm joins a line's ranks: NCCL's communicator or, where they share a GPU, which NCCL does not know how to, its like
// of this process. What is put on a stream is as package cuda has it.
type comm struct {
	Rank, Ranks int
	nccl        *cuda.Comm
	local       *local
}

// AllReduce leaves in to, on every rank, the reduction of count values of every rank's from. Both may be the same.
func (c *comm) AllReduce(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type, op cuda.Reduction) error {
	if c.local != nil {
		return c.local.allReduce(s, to, from, count, t, op)
	}
	return c.nccl.AllReduce(s, to, from, count, t, op)
}

// ReduceScatter leaves in to the rank's count values of the sum.
func (c *comm) ReduceScatter(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	if c.local != nil {
		return c.local.reduceScatter(s, to, from, count, t)
	}
	return c.nccl.ReduceScatter(s, to, from, count, t, cuda.Sum)
}

// AllGather leaves in to the count values of every rank's from.
func (c *comm) AllGather(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	if c.local != nil {
		return c.local.allGather(s, to, from, count, t)
	}
	return c.nccl.AllGather(s, to, from, count, t)
}

// Send sends count values to a peer, which calls Receive.
func (c *comm) Send(s *cuda.Stream, from cuda.Pointer, count int, t cuda.Type, peer int) error {
	if c.local != nil {
		return c.local.send(s, from, count*typeSize(t), peer)
	}
	return c.nccl.Send(s, from, count, t, peer)
}

// Receive receives what a peer sends.
func (c *comm) Receive(s *cuda.Stream, to cuda.Pointer, count int, t cuda.Type, peer int) error {
	if c.local != nil {
		return c.local.receive(s, to, count*typeSize(t), peer)
	}
	return c.nccl.Receive(s, to, count, t, peer)
}

// Group makes one of the sends and receives that f calls, on a stream; all ranks do.
func (c *comm) Group(s *cuda.Stream, f func() error) error {
	if c.local != nil {
		return c.local.together(s, f)
	}
	return c.nccl.Group(f)
}

// typeSize is how many bytes a value has.
func typeSize(t cuda.Type) int {
	return map[cuda.Type]int{cuda.Int32: 4, cuda.Float16: 2, cuda.Float32: 4, cuda.Float64: 8, cuda.BFloat16: 2}[t]
}

// split is the communicator of this rank's part of a line that all ranks split at once; nil where it has none.
func (d *device) split(ctx context.Context, m *machine, name string, ranks []int) (*comm, error) {
	if m.shared {
		if len(ranks) < 2 {
			return nil, nil
		}
		me := slices.Index(ranks, d.rank.ID)
		return &comm{Rank: me, Ranks: len(ranks), local: newLocal(d, m.hub(name, ranks), me)}, nil
	}
	if len(d.comms) == 0 {
		return nil, nil
	}
	color, key := cuda.NoColor, 0 // with which a rank alone takes part too, while others may share a line
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

// label is a line's name for people: of a group the axes.
func (d *device) label(name string) string {
	for i, g := range d.rank.Program.Groups {
		if name == rt.MainLine(i) {
			return strings.Join(g.Axes, "·")
		}
	}
	return name
}

// errLost is what a rank that waits for others is told when one of them has failed.
var errLost = errors.New("gpu: another rank has failed")
