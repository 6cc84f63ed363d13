//go:build cuda && linux

package cuda

/*
#include "nccl.h"

static int planc_registers(void) {
	return planc_nccl.ncclMemAlloc && planc_nccl.ncclMemFree && planc_nccl.ncclCommRegister &&
		planc_nccl.ncclCommDeregister;
}
*/
import "C"

import "unsafe"

// Registers reports whether this NCCL supports registering memory before it is communicated, as it does
// since 2.19. Peers, switches and the network then access it in place if the hardware and the memory allow
// it. Otherwise NCCL copies.
func (n *NCCL) Registers() bool { return C.planc_registers() != 0 }

// Alloc allocates memory of the bound device that NCCL can use in place once it is registered. Its contents
// are undefined. It fails unless NCCL [NCCL.Registers].
func (n *NCCL) Alloc(bytes int64) (Memory, error) {
	if !n.Registers() {
		return Memory{}, &Error{Call: "ncclMemAlloc", Name: "ncclResult_t", Code: 3,
			Text: "NCCL " + n.Version + " does not support it"}
	}
	var p unsafe.Pointer
	if err := ncclError(nil, C.planc_ncclMemAlloc(&p, C.size_t(bytes)), "ncclMemAlloc", "%d bytes", bytes); err != nil {
		return Memory{}, err
	}
	return Memory{Pointer(uintptr(p)), bytes}, nil
}

// Free frees what [NCCL.Alloc] returned. It must be registered with no communicator.
func (n *NCCL) Free(m Memory) error {
	return ncclError(nil, C.planc_ncclMemFree(addressOf(m.Pointer)), "ncclMemFree", "%d bytes", m.Bytes)
}

// Register registers memory with the communicator, until [Comm.Deregister] or the communicator's end. It
// returns false if registration is turned off (NCCL_LOCAL_REGISTER=0). If the memory of one rank in a
// collective is registered, that of all must be.
func (c *Comm) Register(m Memory) (known bool, err error) {
	var handle unsafe.Pointer
	r := c.call(func() C.ncclResult_t {
		return C.planc_ncclCommRegister(c.c, addressOf(m.Pointer), C.size_t(m.Bytes), &handle)
	})
	if err := ncclError(c, r, "ncclCommRegister", "%d bytes, rank %d of %d", m.Bytes, c.Rank, c.Ranks); err != nil ||
		handle == nil {
		return false, err
	}
	c.registered = append(c.registered, handle)
	return true, nil
}

// Deregister removes all registrations. No running call and no graph may use the memory.
func (c *Comm) Deregister() error {
	for len(c.registered) > 0 {
		last := len(c.registered) - 1
		r := c.call(func() C.ncclResult_t { return C.planc_ncclCommDeregister(c.c, c.registered[last]) })
		if err := ncclError(c, r, "ncclCommDeregister", "rank %d of %d", c.Rank, c.Ranks); err != nil {
			return err
		}
		c.registered = c.registered[:last]
	}
	return nil
}
