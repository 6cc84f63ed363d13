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

// Memory is a range of bytes of a device.
type Memory struct {
	Pointer Pointer
	Bytes   int64
}

// Alloc allocates memory of the bound device, aligned at 256 bytes or more. Its contents are undefined.
func Alloc(bytes int64) (Memory, error) {
	var p C.CUdeviceptr
	if err := driverError(C.planc_cuMemAlloc_v2(&p, C.size_t(bytes)), "cuMemAlloc_v2", "%d bytes", bytes); err != nil {
		return Memory{}, err
	}
	return Memory{Pointer(p), bytes}, nil
}

// Free frees the whole memory that [Alloc] returned. Nothing may use it any more.
func (m Memory) Free() error {
	return driverError(C.planc_cuMemFree_v2(C.CUdeviceptr(m.Pointer)), "cuMemFree_v2", "%d bytes", m.Bytes)
}

// At returns the part of the given size at an offset.
func (m Memory) At(offset, bytes int64) Memory {
	bounds(m.Bytes, offset, bytes)
	return Memory{m.Pointer + Pointer(offset), bytes}
}

func bounds(have, offset, bytes int64) {
	if offset < 0 || bytes < 0 || offset > have-bytes {
		panic(fmt.Sprintf("cuda: %d bytes at %d exceed memory of %d bytes", bytes, offset, have))
	}
}

// Pinned is a page-locked range of bytes of the host. Copies between it and any device overlap other work.
type Pinned struct {
	p     unsafe.Pointer
	bytes int64
}

// AllocPinned allocates pinned memory.
func AllocPinned(bytes int64) (Pinned, error) {
	var p unsafe.Pointer
	if err := driverError(C.planc_cuMemHostAlloc(&p, C.size_t(bytes), C.planc_host_portable),
		"cuMemHostAlloc", "%d bytes",
		bytes); err != nil {
		return Pinned{}, err
	}
	return Pinned{p, bytes}, nil
}

// Free frees what [AllocPinned] returned. Slices of it must not be used any more.
func (p Pinned) Free() error {
	return driverError(C.planc_cuMemFreeHost(p.p), "cuMemFreeHost", "%d bytes", p.bytes)
}

// At returns the part of the given size at an offset.
func (p Pinned) At(offset, bytes int64) Pinned {
	bounds(p.bytes, offset, bytes)
	return Pinned{unsafe.Add(p.p, offset), bytes}
}

// Slice returns the memory. Until a copy has finished, its source must not be written, and its destination
// neither read nor written.
func (p Pinned) Slice() []byte { return unsafe.Slice((*byte)(p.p), p.bytes) }

// Upload enqueues a copy from the host to the device. Both have the same size.
func (s *Stream) Upload(to Memory, from Pinned) error {
	same(to.Bytes, from.bytes)
	return driverError(C.planc_cuMemcpyHtoDAsync_v2(C.CUdeviceptr(to.Pointer), from.p, C.size_t(to.Bytes), s.handle()),
		"cuMemcpyHtoDAsync_v2", "%d bytes", to.Bytes)
}

// Download enqueues a copy from the device to the host. Both have the same size.
func (s *Stream) Download(to Pinned, from Memory) error {
	same(to.bytes, from.Bytes)
	return driverError(C.planc_cuMemcpyDtoHAsync_v2(to.p, C.CUdeviceptr(from.Pointer), C.size_t(to.bytes), s.handle()),
		"cuMemcpyDtoHAsync_v2", "%d bytes", to.bytes)
}

// Copy enqueues a copy within the device. Both have the same size and must not overlap.
func (s *Stream) Copy(to, from Memory) error {
	same(to.Bytes, from.Bytes)
	return driverError(C.planc_cuMemcpyDtoDAsync_v2(C.CUdeviceptr(to.Pointer), C.CUdeviceptr(from.Pointer),
		C.size_t(to.Bytes), s.handle()), "cuMemcpyDtoDAsync_v2", "%d bytes", to.Bytes)
}

// Fill enqueues setting each byte.
func (s *Stream) Fill(to Memory, value byte) error {
	return driverError(C.planc_cuMemsetD8Async(C.CUdeviceptr(to.Pointer), C.uchar(value), C.size_t(to.Bytes), s.handle()),
		"cuMemsetD8Async", "%d bytes", to.Bytes)
}

func same(to, from int64) {
	if to != from {
		panic(fmt.Sprintf("cuda: a copy from %d bytes to %d", from, to))
	}
}
