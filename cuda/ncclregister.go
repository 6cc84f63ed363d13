//go:build cuda && linux

package cuda

/*
#include "nccl.h"

static int planc_registers(void) {
	return planc_nccl.ncclMemAlloc && planc_nccl.ncclMemFree && planc_nccl.ncclCommRegister && planc_nccl.ncclCommDeregister;
}
*/
import "C"

import "unsafe"

// Registers tells whether this NCCL can be told beforehand of memory that is communicated, as it can since 2.19. Peers,
// switches and network then read and write it in place, where the hardware and the memory allow that; else NCCL goes on
// copying.
func (n *NCCL) Registers() bool { return C.planc_registers() != 0 }

// Alloc takes memory of the bound device of the kind that NCCL uses in place once it is registered; what is in it is
// not defined. It fails on an NCCL that does not [NCCL.Registers].
func (n *NCCL) Alloc(bytes int64) (Memory, error) {
	if !n.Registers() {
		return Memory{}, &Error{Call: "ncclMemAlloc", Name: "ncclResult_t", Code: 3,
			Text: "NCCL " + n.Version + " has none"}
	}
	var p unsafe.Pointer
	if err := refused(nil, C.planc_ncclMemAlloc(&p, C.size_t(bytes)), "ncclMemAlloc", "%d bytes", bytes); err != nil {
		return Memory{}, err
	}
	return Memory{Pointer(uintptr(p)), bytes}, nil
}

// Free gives back what [NCCL.Alloc] took, which no communicator knows any more.
func (n *NCCL) Free(m Memory) error {
	return refused(nil, C.planc_ncclMemFree(at(m.Pointer)), "ncclMemFree", "%d bytes", m.Bytes)
}

// Register tells NCCL of memory that is communicated; it stays known until [Comm.Deregister], or the communicator's
// end. It is false where NCCL was told not to listen (NCCL_LOCAL_REGISTER=0). Where one rank's memory in a collective
// is known, that of all must be.
func (c *Comm) Register(m Memory) (known bool, err error) {
	var handle unsafe.Pointer
	r := c.call(func() C.ncclResult_t {
		return C.planc_ncclCommRegister(c.c, at(m.Pointer), C.size_t(m.Bytes), &handle)
	})
	if err := refused(c, r, "ncclCommRegister", "%d bytes, rank %d of %d", m.Bytes, c.Rank, c.Ranks); err != nil ||
		handle == nil {
		return false, err
	}
	c.registered = append(c.registered, handle)
	return true, nil
}

// Deregister has NCCL forget what it was told of. Nothing that is begun uses it any more, and no graph.
func (c *Comm) Deregister() error {
	for len(c.registered) > 0 {
		last := len(c.registered) - 1
		r := c.call(func() C.ncclResult_t { return C.planc_ncclCommDeregister(c.c, c.registered[last]) })
		if err := refused(c, r, "ncclCommDeregister", "rank %d of %d", c.Rank, c.Ranks); err != nil {
			return err
		}
		c.registered = c.registered[:last]
	}
	return nil
}
