//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

import "runtime"

// Context is a device taken into use: all memory, streams and kernels of this process on it.
type Context struct {
	Device Device
	c      C.CUcontext
}

// Open takes the device into use. Contexts of one device are one; each is closed on its own.
func (d Device) Open() (*Context, error) {
	c := &Context{Device: d}
	err := failure(C.planc_cuDevicePrimaryCtxRetain(&c.c, d.id), "cuDevicePrimaryCtxRetain", "device %d", d.Ordinal)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Bind ties the calling goroutine to its thread, and that to the context, until unbind is called: once, by the same
// goroutine. The driver keeps the context by thread, so what follows would else go to any device or none. What was
// bound before is bound again afterwards.
func (c *Context) Bind() (unbind func(), err error) {
	runtime.LockOSThread()
	var before C.CUcontext
	err = failure(C.planc_cuCtxGetCurrent(&before), "cuCtxGetCurrent", "")
	if err == nil {
		err = failure(C.planc_cuCtxSetCurrent(c.c), "cuCtxSetCurrent", "device %d", c.Device.Ordinal)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		C.planc_cuCtxSetCurrent(before) // that it fails does no harm: who needs a context binds one
		runtime.UnlockOSThread()
	}, nil
}

// Reach lets kernels of the bound context use memory of another, whose device it [Device.Reaches].
func (c *Context) Reach(other *Context) error {
	r := C.planc_cuCtxEnablePeerAccess(other.c, 0)
	if r == C.planc_peer_already {
		return nil
	}
	return failure(r, "cuCtxEnablePeerAccess", "devices %d and %d", c.Device.Ordinal, other.Device.Ordinal)
}

// Synchronize waits for all that was begun in the bound context.
func (c *Context) Synchronize() error {
	return failure(C.planc_cuCtxSynchronize(), "cuCtxSynchronize", "device %d", c.Device.Ordinal)
}

// Free is how many bytes of the bound context's device are free, for all processes.
func (c *Context) Free() (int64, error) {
	var free, total C.size_t
	err := failure(C.planc_cuMemGetInfo_v2(&free, &total), "cuMemGetInfo_v2", "device %d", c.Device.Ordinal)
	return int64(free), err
}

// Close gives the device back; what is left in the context goes with the last one of its device.
func (c *Context) Close() error {
	return failure(C.planc_cuDevicePrimaryCtxRelease_v2(c.Device.id), "cuDevicePrimaryCtxRelease_v2", "device %d",
		c.Device.Ordinal)
}
