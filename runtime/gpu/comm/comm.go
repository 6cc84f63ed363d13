//go:build cuda && linux

package comm

import (
	"errors"
	"slices"

	"github.com/planc-dev/planc/cuda"
)

// ErrPeerFailed is the error of a rank that waits for others after one of them has failed.
var ErrPeerFailed = errors.New("gpu: another rank has failed")

// Comm is the communicator of a line's ranks: NCCL's or, if the ranks share a GPU, which NCCL does not
// support, one within this process. Its methods enqueue work on a stream like those of package cuda.
type Comm struct {
	Rank, Ranks int
	NCCL        *cuda.Comm // nil if the ranks share a GPU
	shared      *shared
}

// AllReduce writes the reduction of every rank's count values at from to the address to of every rank. Both
// addresses may be equal.
func (c *Comm) AllReduce(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type, op cuda.Reduction) error {
	if c.shared != nil {
		return c.shared.allReduce(s, to, from, count, t, op)
	}
	return c.NCCL.AllReduce(s, to, from, count, t, op)
}

// ReduceScatter writes this rank's count values of the sum to the address to.
func (c *Comm) ReduceScatter(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	if c.shared != nil {
		return c.shared.reduceScatter(s, to, from, count, t)
	}
	return c.NCCL.ReduceScatter(s, to, from, count, t, cuda.Sum)
}

// AllGather writes the count values of every rank's from to the address to.
func (c *Comm) AllGather(s *cuda.Stream, to, from cuda.Pointer, count int, t cuda.Type) error {
	if c.shared != nil {
		return c.shared.allGather(s, to, from, count, t)
	}
	return c.NCCL.AllGather(s, to, from, count, t)
}

// Send sends count values to a peer, which must call Receive.
func (c *Comm) Send(s *cuda.Stream, from cuda.Pointer, count int, t cuda.Type, peer int) error {
	if c.shared != nil {
		return c.shared.send(s, from, count*typeSize(t), peer)
	}
	return c.NCCL.Send(s, from, count, t, peer)
}

// Receive receives the values that a peer sends.
func (c *Comm) Receive(s *cuda.Stream, to cuda.Pointer, count int, t cuda.Type, peer int) error {
	if c.shared != nil {
		return c.shared.receive(s, to, count*typeSize(t), peer)
	}
	return c.NCCL.Receive(s, to, count, t, peer)
}

// Rows makes the collective calls of n rows. NCCL combines them into one operation.
func (c *Comm) Rows(n int, call func(row int) error) error {
	all := func() error {
		for i := range n {
			if err := call(i); err != nil {
				return err
			}
		}
		return nil
	}
	if c.shared != nil || n == 1 {
		return all()
	}
	return c.NCCL.Group(all)
}

// Group combines the sends and receives that f calls into one operation on a stream. All ranks must call
// it.
func (c *Comm) Group(s *cuda.Stream, f func() error) error {
	if c.shared != nil {
		return c.shared.together(s, f)
	}
	return c.NCCL.Group(f)
}

// Share returns the communicator of ranks of one process that share a GPU: that of rank me for one of a line's groups.
func Share(h *Hubs, device Launcher, line string, ranks []int, me int) *Comm {
	at := slices.Index(ranks, me)
	return &Comm{Rank: at, Ranks: len(ranks), shared: &shared{device: device, hub: h.find(line, ranks), me: at}}
}

// Close frees what the communicator of ranks that share a GPU has allocated. NCCL's is closed by its owner.
func (c *Comm) Close() error {
	if c.shared == nil {
		return nil
	}
	return c.shared.close()
}

// BeginStep prepares the communicator for a step. All messages have arrived before.
func (c *Comm) BeginStep() {
	if c.shared != nil {
		c.shared.used = 0
	}
}

// Shares reports whether the ranks share a GPU. Then Settle and SettleAll wait for messages.
func (c *Comm) Shares() bool { return c.shared != nil }

// Settle makes later work on a stream wait until the oldest pending message has been received.
func (c *Comm) Settle(s *cuda.Stream) error { return c.shared.settle(s, 1) }

// SettleAll makes later work on a stream wait until all pending messages have been received.
func (c *Comm) SettleAll(s *cuda.Stream) error {
	if c.shared == nil {
		return nil
	}
	return c.shared.settle(s, len(c.shared.pending))
}

// typeSize returns the bytes of a value.
func typeSize(t cuda.Type) int {
	return map[cuda.Type]int{cuda.Int32: 4, cuda.Float16: 2, cuda.Float32: 4, cuda.Float64: 8, cuda.BFloat16: 2}[t]
}
