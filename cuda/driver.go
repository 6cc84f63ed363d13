//go:build cuda && linux

package cuda

/*
#cgo CFLAGS: -std=gnu11 -Wall
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "driver.h"
#include "open.h"
*/
import "C"

import (
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// Driver is the open and initialized NVIDIA driver.
type Driver struct {
	Path    string // of its library
	Version string // newest CUDA version that it supports, such as 12.4
	number  int    // the same as a number, such as 12040
}

var (
	driverMutex sync.Mutex
	theDriver   *Driver // one per process
)

// Open opens and initializes the driver. It searches its library in folders before the system's path. Later
// calls return the same driver. It fails with a [*MissingError], an [*OldError] or, if no GPU works, with
// an [*Error].
func Open(folders ...string) (*Driver, error) {
	driverMutex.Lock()
	defer driverMutex.Unlock()
	if theDriver != nil {
		return theDriver, nil
	}
	path, err := load(LibraryNamed("NVIDIA driver"), folders, "cuInit", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_driver(l)
	})
	if err != nil {
		return nil, err
	}
	if !loadsKernels() {
		setDefault(eagerLoading, "EAGER")
	}
	err = driverError(C.planc_cuInit(0), "cuInit", "")
	if err != nil {
		return nil, err
	}
	var version C.int
	if err := driverError(C.planc_cuDriverGetVersion(&version), "cuDriverGetVersion", ""); err != nil {
		return nil, err
	}
	if version >= orderingDriver {
		setDefault(launchOrder, "1") // before NCCL is opened
	}
	theDriver = &Driver{Path: path, Version: fmt.Sprintf("%d.%d", version/1000, version%1000/10), number: int(version)}
	return theDriver, nil
}

// eagerLoading is the environment variable that makes a driver load a module's kernels with the module if it is
// EAGER. It also holds for the kernels of cuBLAS and cuDNN, which then take more memory, so it is only set if
// [Module.loadKernels] cannot load planc's own.
const eagerLoading = "CUDA_MODULE_LOADING"

// setDefault sets an environment variable for libraries of this process, unless the user has set it.
func setDefault(name, value string) {
	_, set := os.LookupEnv(name)
	if !set {
		_ = os.Setenv(name, value) // fails for malformed names only
	}
}

// load opens a library and binds its functions. It returns the path of the library, which it finds by the
// function call.
func load(l Library, folders []string, call string, bind func(unsafe.Pointer) *C.char) (path string, err error) {
	library, path, err := open(l, folders, try)
	if err != nil {
		return "", err
	}
	name := C.CString(call)
	defer C.free(unsafe.Pointer(name))
	if file := C.planc_path(library, name); file != nil {
		path = C.GoString(file)
	}
	if missing := bind(library); missing != nil {
		return "", &OldError{Library: l, Path: path, Call: C.GoString(missing)}
	}
	return path, nil
}

// try opens a library by name, or says why it cannot.
func try(name string) (library unsafe.Pointer, why string) {
	file := C.CString(name)
	defer C.free(unsafe.Pointer(file))
	var text *C.char
	if library := C.planc_open(file, &text); library != nil {
		return library, ""
	}
	defer C.free(unsafe.Pointer(text))
	return nil, C.GoString(text)
}

// driverError returns the error of a call of the driver, and nil if the call succeeded.
func driverError(r C.CUresult, call, what string, args ...any) error {
	if r == C.planc_ok {
		return nil
	}
	e := &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r), Hint: hints[int(r)]}
	var text *C.char
	e.Name = "an unknown error"
	if C.planc_cuGetErrorName(r, &text) == C.planc_ok && text != nil {
		e.Name = C.GoString(text)
	}
	e.Text = "the driver gives no description"
	if C.planc_cuGetErrorString(r, &text) == C.planc_ok && text != nil {
		e.Text = C.GoString(text)
	}
	return e
}

// Device is a GPU as described by the driver.
type Device struct {
	Ordinal    int // number among the visible GPUs
	Name       string
	Bus        string // PCI address, such as 0000:1b:00.0
	Major      int    // compute capability: 9 for sm_90
	Minor      int
	Processors int   // multiprocessors
	Shared     int   // maximum bytes of shared memory per block
	Memory     int64 // bytes

	id C.CUdevice
}

// Devices returns the GPUs that are visible to this process, at least one.
func (d *Driver) Devices() ([]Device, error) {
	var n C.int
	if err := driverError(C.planc_cuDeviceGetCount(&n), "cuDeviceGetCount", ""); err != nil {
		return nil, err
	}
	devices := make([]Device, n)
	for i := range devices {
		if err := devices[i].read(i); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// read queries the driver about device i.
func (d *Device) read(i int) error {
	d.Ordinal = i
	if err := driverError(C.planc_cuDeviceGet(&d.id, C.int(i)), "cuDeviceGet", "device %d", i); err != nil {
		return err
	}
	var name [256]C.char
	if err := driverError(C.planc_cuDeviceGetName(&name[0], C.int(len(name)), d.id), "cuDeviceGetName", "device %d",
		i); err != nil {
		return err
	}
	d.Name = C.GoString(&name[0])
	if err := driverError(C.planc_cuDeviceGetPCIBusId(&name[0], C.int(len(name)), d.id), "cuDeviceGetPCIBusId",
		"device %d", i); err != nil {
		return err
	}
	d.Bus = C.GoString(&name[0])
	var bytes C.size_t
	if err := driverError(C.planc_cuDeviceTotalMem_v2(&bytes, d.id), "cuDeviceTotalMem_v2", "device %d",
		i); err != nil {
		return err
	}
	d.Memory = int64(bytes)
	for _, a := range []struct {
		to   *int
		what C.CUdevice_attribute
	}{{&d.Major, C.planc_attr_major}, {&d.Minor, C.planc_attr_minor}, {&d.Processors, C.planc_attr_multiprocessors},
		{&d.Shared, C.planc_attr_shared_optin}} {
		var value C.int
		if err := driverError(C.planc_cuDeviceGetAttribute(&value, a.what, d.id), "cuDeviceGetAttribute", "device %d",
			i); err != nil {
			return err
		}
		*a.to = int(value)
	}
	return nil
}

// CanLaunchEarly reports whether kernels on the device may begin before the previous one has ended: see
// [Stream.EarlyLaunch].
func (d Device) CanLaunchEarly() bool { return d.Major >= 9 && theDriver.number >= earlyInGraphs }

// earlyInGraphs is the first driver that keeps early launches when it captures a graph: 12.3.
const earlyInGraphs = 12030

// Reaches reports whether the device can read the other's memory directly.
func (d Device) Reaches(other Device) (bool, error) {
	var can C.int
	err := driverError(C.planc_cuDeviceCanAccessPeer(&can, d.id, other.id), "cuDeviceCanAccessPeer",
		"devices %d and %d",
		d.Ordinal, other.Ordinal)
	return can != 0, err
}
