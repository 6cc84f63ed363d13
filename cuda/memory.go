//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Memory is a run of bytes of a device.
type Memory struct {
	Pointer Pointer
	Bytes   int64
}

// Alloc takes memory of the bound device, aligned at 256 bytes at least; what is in it is not defined.
func Alloc(bytes int64) (Memory, error) {
	var p C.CUdeviceptr
	if err := failure(C.planc_cuMemAlloc_v2(&p, C.size_t(bytes)), "cuMemAlloc_v2", "%d bytes", bytes); err != nil {
		return Memory{}, err
	}
	return Memory{Pointer(p), bytes}, nil
}

// Free gives back what [Alloc] took, which is whole and in use by nothing.
func (m Memory) Free() error {
	return failure(C.planc_cuMemFree_v2(C.CUdeviceptr(m.Pointer)), "cuMemFree_v2", "%d bytes", m.Bytes)
}

// At is the part that begins at an offset and has so many bytes.
func (m Memory) At(offset, bytes int64) Memory {
	bounds(m.Bytes, offset, bytes)
	return Memory{m.Pointer + Pointer(offset), bytes}
}

func bounds(have, offset, bytes int64) {
	if offset < 0 || bytes < 0 || offset > have-bytes {
		panic(fmt.Sprintf("cuda: %d bytes at %d of memory of %d", bytes, offset, have))
	}
}

// Pinned is a run of bytes of the host that does not move, so that copies to and from any device run beside all else.
type Pinned struct {
	p     unsafe.Pointer
	bytes int64
}

// AllocPinned takes pinned memory.
func AllocPinned(bytes int64) (Pinned, error) {
	var p unsafe.Pointer
	if err := failure(C.planc_cuMemHostAlloc(&p, C.size_t(bytes), C.planc_host_portable), "cuMemHostAlloc", "%d bytes",
		bytes); err != nil {
		return Pinned{}, err
	}
	return Pinned{p, bytes}, nil
}

// Free gives back what [AllocPinned] took; slices of it must not be used any more.
func (p Pinned) Free() error {
	return failure(C.planc_cuMemFreeHost(p.p), "cuMemFreeHost", "%d bytes", p.bytes)
}

// At is the part that begins at an offset and has so many bytes.
func (p Pinned) At(offset, bytes int64) Pinned {
	bounds(p.bytes, offset, bytes)
	return Pinned{unsafe.Add(p.p, offset), bytes}
}

// Slice is the memory itself. What a copy has not finished with must not be written, or read where it writes.
func (p Pinned) Slice() []byte { return unsafe.Slice((*byte)(p.p), p.bytes) }

// Upload copies host memory to the device, in the stream's turn. Both have the same size.
func (s *Stream) Upload(to Memory, from Pinned) error {
	same(to.Bytes, from.bytes)
	return failure(C.planc_cuMemcpyHtoDAsync_v2(C.CUdeviceptr(to.Pointer), from.p, C.size_t(to.Bytes), s.s),
		"cuMemcpyHtoDAsync_v2", "%d bytes", to.Bytes)
}

// Download copies device memory to the host, in the stream's turn. Both have the same size.
func (s *Stream) Download(to Pinned, from Memory) error {
	same(to.bytes, from.Bytes)
	return failure(C.planc_cuMemcpyDtoHAsync_v2(to.p, C.CUdeviceptr(from.Pointer), C.size_t(to.bytes), s.s),
		"cuMemcpyDtoHAsync_v2", "%d bytes", to.bytes)
}

// Copy copies memory of the device, in the stream's turn. Both have the same size and do not overlap.
func (s *Stream) Copy(to, from Memory) error {
	same(to.Bytes, from.Bytes)
	return failure(C.planc_cuMemcpyDtoDAsync_v2(C.CUdeviceptr(to.Pointer), C.CUdeviceptr(from.Pointer),
		C.size_t(to.Bytes), s.s), "cuMemcpyDtoDAsync_v2", "%d bytes", to.Bytes)
}

// Fill sets each byte, in the stream's turn.
func (s *Stream) Fill(to Memory, value byte) error {
	return failure(C.planc_cuMemsetD8Async(C.CUdeviceptr(to.Pointer), C.uchar(value), C.size_t(to.Bytes), s.s),
		"cuMemsetD8Async", "%d bytes", to.Bytes)
}

func same(to, from int64) {
	if to != from {
		panic(fmt.Sprintf("cuda: a copy of %d bytes into %d", from, to))
	}
}
