//go:build cuda && linux

package cuda

/*
#include "nccl.h"
*/
import "C"

import (
	"errors"
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

func at(p Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) } // a device's address, which Go's collector does not look at

// AllReduce leaves in to, on every rank, the reduction of count values of every rank's from. Both may be the same.
func (c *Comm) AllReduce(s *Stream, to, from Pointer, count int, t Type, op Reduction) error {
	r := C.planc_ncclAllReduce(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), C.ncclRedOp_t(op), c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	return c.begun(r, "ncclAllReduce", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// ReduceScatter leaves in to the rank's count values of the reduction of Ranks*count. In place, to is that part of from.
func (c *Comm) ReduceScatter(s *Stream, to, from Pointer, count int, t Type, op Reduction) error {
	r := C.planc_ncclReduceScatter(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), C.ncclRedOp_t(op), c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	return c.begun(r, "ncclReduceScatter", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// AllGather leaves in to the count values of every rank's from, in the order of the ranks. In place, from is that part of to.
func (c *Comm) AllGather(s *Stream, to, from Pointer, count int, t Type) error {
	r := C.planc_ncclAllGather(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	return c.begun(r, "ncclAllGather", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// Broadcast leaves in to the count values of from of the rank root.
func (c *Comm) Broadcast(s *Stream, to, from Pointer, count int, t Type, root int) error {
	r := C.planc_ncclBroadcast(at(from), at(to), C.size_t(count), C.ncclDataType_t(t), C.int(root), c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	return c.begun(r, "ncclBroadcast", "%d values, rank %d of %d", count, c.Rank, c.Ranks)
}

// Send sends count values to a peer, which calls Receive.
func (c *Comm) Send(s *Stream, from Pointer, count int, t Type, peer int) error {
	r := C.planc_ncclSend(at(from), C.size_t(count), C.ncclDataType_t(t), C.int(peer), c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	return c.begun(r, "ncclSend", "%d values to rank %d", count, peer)
}

// Receive receives what a peer sends.
func (c *Comm) Receive(s *Stream, to Pointer, count int, t Type, peer int) error {
	r := C.planc_ncclRecv(at(to), C.size_t(count), C.ncclDataType_t(t), C.int(peer), c.c, (C.cudaStream_t)(unsafe.Pointer(s.s)))
	return c.begun(r, "ncclRecv", "%d values from rank %d", count, peer)
}

// Group makes one of what f calls, so that sends and receives of both directions do not wait for each other.
func (c *Comm) Group(f func() error) error {
	if err := refused(c, C.planc_ncclGroupStart(), "ncclGroupStart", ""); err != nil {
		return err
	}
	ferr := f()
	return errors.Join(ferr, c.begun(C.planc_ncclGroupEnd(), "ncclGroupEnd", "rank %d of %d", c.Rank, c.Ranks))
}
