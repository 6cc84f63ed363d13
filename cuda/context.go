//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

import "runtime"

// Context is an open device: all memory, streams and kernels of this process on it.
type Context struct {
	Device Device
	c      C.CUcontext
}

// Open opens the device. Opening a device again returns the same driver context, but each must be closed.
func (d Device) Open() (*Context, error) {
	c := &Context{Device: d}
	err := driverError(C.planc_cuDevicePrimaryCtxRetain(&c.c, d.id), "cuDevicePrimaryCtxRetain", "device %d", d.Ordinal)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Bind locks the calling goroutine to its thread and binds the context to the thread, until unbind is
// called, once, by the same goroutine. The driver keeps the current context by thread; without Bind, later
// calls could go to any device or none. unbind restores the previous context.
func (c *Context) Bind() (unbind func(), err error) {
	runtime.LockOSThread()
	var before C.CUcontext
	err = driverError(C.planc_cuCtxGetCurrent(&before), "cuCtxGetCurrent", "")
	if err == nil {
		err = driverError(C.planc_cuCtxSetCurrent(c.c), "cuCtxSetCurrent", "device %d", c.Device.Ordinal)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		C.planc_cuCtxSetCurrent(before) // a failure is harmless: whoever needs a context binds one
		runtime.UnlockOSThread()
	}, nil
}

// Reach lets kernels of the bound context access memory of another context, whose device must be reachable
// ([Device.Reaches]).
func (c *Context) Reach(other *Context) error {
	r := C.planc_cuCtxEnablePeerAccess(other.c, 0)
	if r == C.planc_peer_already {
		return nil
	}
	return driverError(r, "cuCtxEnablePeerAccess", "devices %d and %d", c.Device.Ordinal, other.Device.Ordinal)
}

// Synchronize waits for all work in the bound context.
func (c *Context) Synchronize() error {
	return driverError(C.planc_cuCtxSynchronize(), "cuCtxSynchronize", "device %d", c.Device.Ordinal)
}

// Free returns the free bytes of the bound context's device, which all processes share.
func (c *Context) Free() (int64, error) {
	var free, total C.size_t
	err := driverError(C.planc_cuMemGetInfo_v2(&free, &total), "cuMemGetInfo_v2", "device %d", c.Device.Ordinal)
	return int64(free), err
}

// Close releases the device. What is left in the context is freed when the last one of the device is
// closed.
func (c *Context) Close() error {
	return driverError(C.planc_cuDevicePrimaryCtxRelease_v2(c.Device.id), "cuDevicePrimaryCtxRelease_v2", "device %d",
		c.Device.Ordinal)
}
