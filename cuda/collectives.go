//go:build cuda && linux

package cuda

/*
#include "nccl.h"
*/
import "C"

import (
	"unsafe"
)

// Type is the type of a collective's elements, with NCCL's number.
type Type int

// The types of values that programs communicate.
const (
	Int32    Type = 2
	Float16  Type = 6
	Float32  Type = 7
	Float64  Type = 8
	BFloat16 Type = 9
)

// Reduction is the operation of a collective, with NCCL's number.
type Reduction int

// The reductions that programs use.
const (
	Sum  Reduction = 0
	Max  Reduction = 2
	Mean Reduction = 4
)

// addressOf converts a device's address, which Go's garbage collector ignores.
func addressOf(p Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// AllReduce writes the reduction of every rank's count values at from to the address to of every rank. Both
// addresses may be equal.
func (c *Comm) AllReduce(s *Stream, to, from Pointer, count int, t Type, op Reduction) error {
	return c.enqueue(func() C.ncclResult_t {
		return C.planc_ncclAllReduce(addressOf(from), addressOf(to), C.size_t(count), C.ncclDataType_t(t),
			C.ncclRedOp_t(op), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.handle())))
	}, "ncclAllReduce", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// ReduceScatter writes this rank's count values of the reduction of Ranks*count values to the address to.
// In place, to is that part of from.
func (c *Comm) ReduceScatter(s *Stream, to, from Pointer, count int, t Type, op Reduction) error {
	return c.enqueue(func() C.ncclResult_t {
		return C.planc_ncclReduceScatter(addressOf(from), addressOf(to), C.size_t(count), C.ncclDataType_t(t),
			C.ncclRedOp_t(op),
			c.c, (C.cudaStream_t)(unsafe.Pointer(s.handle())))
	}, "ncclReduceScatter", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// AllGather writes the count values of every rank's from to the address to, in the order of the ranks. In
// place, from is this rank's part of to.
func (c *Comm) AllGather(s *Stream, to, from Pointer, count int, t Type) error {
	return c.enqueue(func() C.ncclResult_t {
		return C.planc_ncclAllGather(addressOf(from), addressOf(to), C.size_t(count), C.ncclDataType_t(t), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.handle())))
	}, "ncclAllGather", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// Broadcast copies count values from the rank root to the address to of every rank.
func (c *Comm) Broadcast(s *Stream, to, from Pointer, count int, t Type, root int) error {
	return c.enqueue(func() C.ncclResult_t {
		return C.planc_ncclBroadcast(addressOf(from), addressOf(to), C.size_t(count), C.ncclDataType_t(t),
			C.int(root), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.handle())))
	}, "ncclBroadcast", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// Send sends count values to a peer, which must call Receive.
func (c *Comm) Send(s *Stream, from Pointer, count int, t Type, peer int) error {
	return c.enqueue(func() C.ncclResult_t {
		return C.planc_ncclSend(addressOf(from), C.size_t(count), C.ncclDataType_t(t), C.int(peer), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.handle())))
	}, "ncclSend", "%d values to rank %d", count, peer)
}

// Receive receives the values that a peer sends.
func (c *Comm) Receive(s *Stream, to Pointer, count int, t Type, peer int) error {
	return c.enqueue(func() C.ncclResult_t {
		return C.planc_ncclRecv(addressOf(to), C.size_t(count), C.ncclDataType_t(t), C.int(peer), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.handle())))
	}, "ncclRecv", "%d values from rank %d", count, peer)
}

// deferred is a call that is postponed to the end of its group.
type deferred struct {
	f          func() C.ncclResult_t
	call, what string
	args       []any
}

// enqueue enqueues a collective on its stream, or defers it to the end of a group.
func (c *Comm) enqueue(f func() C.ncclResult_t, call, what string, args ...any) error {
	if c.grouped {
		c.deferred = append(c.deferred, deferred{f, call, what, args})
		return nil
	}
	r := c.call(func() C.ncclResult_t {
		c.last = deferred{call: call, what: what, args: args}
		return f()
	})
	return c.launched(r, call, what, args...)
}

// Group combines the calls that f makes into one, so that sends and receives in both directions do not wait
// for each other. They start when f returns, unless it fails.
func (c *Comm) Group(f func() error) error {
	c.grouped = true
	err := f()
	all := c.deferred
	c.grouped, c.deferred = false, nil
	if err != nil {
		return err
	}
	at := deferred{call: "ncclGroupEnd", what: "rank %d of %d", args: []any{c.Rank, c.Ranks}}
	r := c.call(func() C.ncclResult_t {
		if len(all) > 0 {
			c.last = all[len(all)-1]
		}
		return runGroup(all, &at)
	})
	return c.launched(r, at.call, at.what, at.args...)
}

// runGroup makes the calls of a group and closes it even if one fails. It sets at to the first call that
// fails.
func runGroup(all []deferred, at *deferred) C.ncclResult_t {
	first := C.planc_ncclGroupStart()
	if first != C.planc_nccl_ok {
		return first
	}
	for _, k := range all {
		if r := k.f(); first == C.planc_nccl_ok && r != C.planc_nccl_ok && r != C.planc_nccl_in_progress {
			first, *at = r, k
		}
	}
	if r := C.planc_ncclGroupEnd(); first == C.planc_nccl_ok {
		first = r
	}
	return first
}
