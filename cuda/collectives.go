//go:build cuda && linux

package cuda

/*
#include "nccl.h"
*/
import "C"

import (
	"unsafe"
)

// Type is the type of a collective's elements, by NCCL's number.
type Type int

// The types of values that programs send.
const (
	Int32    Type = 2
	Float16  Type = 6
	Float32  Type = 7
	Float64  Type = 8
	BFloat16 Type = 9
)

// Reduction is what a collective does with the values of the ranks, by NCCL's number.
type Reduction int

// What programs reduce with.
const (
	Sum  Reduction = 0
	Max  Reduction = 2
	Mean Reduction = 4
)

// a device's address, which Go's collector does not look at
func at(p Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// AllReduce leaves in to, on every rank, the reduction of count values of every rank's from. Both may be the same.
func (c *Comm) AllReduce(s *Stream, to, from Pointer, count int, t Type, op Reduction) error {
	return c.put(func() C.ncclResult_t {
		return C.planc_ncclAllReduce(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), C.ncclRedOp_t(op), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.s)))
	}, "ncclAllReduce", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// ReduceScatter leaves in to the rank's count values of the reduction of Ranks*count. In place, to is that part of
// from.
func (c *Comm) ReduceScatter(s *Stream, to, from Pointer, count int, t Type, op Reduction) error {
	return c.put(func() C.ncclResult_t {
		return C.planc_ncclReduceScatter(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), C.ncclRedOp_t(op),
			c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	}, "ncclReduceScatter", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// AllGather leaves in to the count values of every rank's from, in the order of the ranks. In place, from is that part
// of to.
func (c *Comm) AllGather(s *Stream, to, from Pointer, count int, t Type) error {
	return c.put(func() C.ncclResult_t {
		return C.planc_ncclAllGather(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.s)))
	}, "ncclAllGather", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// Broadcast leaves in to the count values of from of the rank root.
func (c *Comm) Broadcast(s *Stream, to, from Pointer, count int, t Type, root int) error {
	return c.put(func() C.ncclResult_t {
		return C.planc_ncclBroadcast(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), C.int(root), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.s)))
	}, "ncclBroadcast", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// Send sends count values to a peer, which calls Receive.
func (c *Comm) Send(s *Stream, from Pointer, count int, t Type, peer int) error {
	return c.put(func() C.ncclResult_t {
		return C.planc_ncclSend(at(from), C.size_t(count), C.ncclDataType_t(t), C.int(peer), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.s)))
	}, "ncclSend", "%d values to rank %d", count, peer)
}

// Receive receives what a peer sends.
func (c *Comm) Receive(s *Stream, to Pointer, count int, t Type, peer int) error {
	return c.put(func() C.ncclResult_t {
		return C.planc_ncclRecv(at(to), C.size_t(count), C.ncclDataType_t(t), C.int(peer), c.c,
			(C.cudaStream_t)(unsafe.Pointer(s.s)))
	}, "ncclRecv", "%d values from rank %d", count, peer)
}

// kept is a call that waits for the end of its group.
type kept struct {
	f          func() C.ncclResult_t
	call, what string
	args       []any
}

// put puts a collective on its stream, or keeps it for the end of a group.
func (c *Comm) put(f func() C.ncclResult_t, call, what string, args ...any) error {
	if c.grouped {
		c.kept = append(c.kept, kept{f, call, what, args})
		return nil
	}
	r := c.call(func() C.ncclResult_t {
		c.last = kept{call: call, what: what, args: args}
		return f()
	})
	return c.begun(r, call, what, args...)
}

// Group makes one of what f calls of the communicator, so that sends and receives of both directions do not wait for
// each other. They are begun when f returns, unless it fails.
func (c *Comm) Group(f func() error) error {
	c.grouped = true
	err := f()
	all := c.kept
	c.grouped, c.kept = false, nil
	if err != nil {
		return err
	}
	at := kept{call: "ncclGroupEnd", what: "rank %d of %d", args: []any{c.Rank, c.Ranks}}
	r := c.call(func() C.ncclResult_t {
		if len(all) > 0 {
			c.last = all[len(all)-1]
		}
		return grouped(all, &at)
	})
	return c.begun(r, at.call, at.what, at.args...)
}

// grouped makes the calls of a group and ends it, whatever fails; at becomes the first that does.
func grouped(all []kept, at *kept) C.ncclResult_t {
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
