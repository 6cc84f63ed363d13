//go:build cuda && linux

package cuda

/*
#cgo noescape planc_launch
#cgo nocallback planc_launch
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// Module is a set of compiled kernels, loaded into the bound context.
type Module struct{ m C.CUmodule }

// Load loads a fatbin, a cubin or the text of PTX, with the code of all its kernels. It copies the image.
func Load(image []byte) (*Module, error) {
	text := append(image[:len(image):len(image)], 0) // PTX is a C string; the other formats hold their length
	m := &Module{}
	err := driverError(C.planc_cuModuleLoadData(&m.m, unsafe.Pointer(&text[0])), "cuModuleLoadData", "%d bytes",
		len(image))
	if err != nil {
		return nil, err
	}
	err = m.loadKernels()
	if err != nil {
		return nil, errors.Join(err, m.Unload())
	}
	return m, nil
}

// loadKernels loads the code of every kernel. Since CUDA 12.2 the driver loads it at the first launch by default, and
// may then wait for running work, which may wait for another rank (CUDA C++ Programming Guide, Lazy Loading). Drivers
// before 12.4 do not have these functions: see [eagerLoading].
func (m *Module) loadKernels() error {
	if !loadsKernels() {
		return nil
	}
	var n C.uint
	err := driverError(C.planc_cuModuleGetFunctionCount(&n, m.m), "cuModuleGetFunctionCount", "")
	if err != nil || n == 0 {
		return err
	}
	all := make([]C.CUfunction, n)
	err = driverError(C.planc_cuModuleEnumerateFunctions(&all[0], n, m.m), "cuModuleEnumerateFunctions", "%d", int(n))
	if err != nil {
		return err
	}
	for _, f := range all {
		err := driverError(C.planc_cuFuncLoad(f), "cuFuncLoad", "")
		if err != nil {
			return err
		}
	}
	return nil
}

// loadsKernels reports whether the driver has the functions that [Module.loadKernels] calls.
func loadsKernels() bool {
	d := &C.planc_driver
	return d.cuModuleGetFunctionCount != nil && d.cuModuleEnumerateFunctions != nil && d.cuFuncLoad != nil
}

// Unload unloads the module and its kernels.
func (m *Module) Unload() error {
	return driverError(C.planc_cuModuleUnload(m.m), "cuModuleUnload", "")
}

// Kernel is a function of a module that can be launched.
type Kernel struct {
	Name string
	f    C.CUfunction
}

// Kernel finds a function by its name in the object file; with extern "C" that is its own name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	k := &Kernel{Name: name}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if err := driverError(C.planc_cuModuleGetFunction(&k.f, m.m, text), "cuModuleGetFunction", "%s", name); err != nil {
		return nil, err
	}
	return k, nil
}

// Reserve allows launches with this many bytes of dynamic shared memory. Without it the limit is 48 KiB.
func (k *Kernel) Reserve(bytes int) error {
	return driverError(C.planc_cuFuncSetAttribute(k.f, C.planc_func_dynamic_shared, C.int(bytes)), "cuFuncSetAttribute",
		"%s, %d bytes of shared memory", k.Name, bytes)
}

// Usage is the resource usage of a kernel.
type Usage struct {
	Registers int // per thread
	Local     int // bytes per thread in slow memory; 0 unless registers spill
	Shared    int // bytes per block, without dynamic shared memory
	Threads   int // maximum per block
}

// Usage queries the driver for the kernel's usage.
func (k *Kernel) Usage() (u Usage, err error) {
	for _, a := range []struct {
		to   *int
		what C.CUfunction_attribute
	}{{&u.Registers, C.planc_func_registers}, {&u.Local, C.planc_func_local}, {&u.Shared, C.planc_func_shared},
		{&u.Threads, C.planc_func_max_threads}} {
		var value C.int
		if err := driverError(C.planc_cuFuncGetAttribute(&value, a.what, k.f), "cuFuncGetAttribute", "%s",
			k.Name); err != nil {
			return u, err
		}
		*a.to = int(value)
	}
	return u, nil
}

// Shape is the size of a launch. In Grid and Block, 0 means 1.
type Shape struct {
	Grid    [3]int // blocks
	Block   [3]int // threads per block
	Cluster [3]int // blocks per cluster; zero for none, as GPUs before sm_90 require
	Shared  int    // bytes of dynamic shared memory per block
}

// Launch enqueues the kernel on the stream. The arguments are copied before it returns.
func (s *Stream) Launch(k *Kernel, shape Shape, args *Args) error {
	grid, block, cluster := extent(shape.Grid), extent(shape.Block), extent(shape.Cluster)
	if shape.Cluster == [3]int{} {
		cluster[0] = 0
	}
	var data *C.uint8_t
	var at *C.uint32_t
	if n := len(args.at); n > 0 {
		data, at = (*C.uint8_t)(unsafe.SliceData(args.data)), (*C.uint32_t)(unsafe.SliceData(args.at))
	}
	early := C.int(0)
	if s.EarlyLaunch && s.afterKernel {
		early = 1
	}
	r := C.planc_launch(k.f, &grid[0], &block[0], &cluster[0], C.uint(shape.Shared), early, s.s, data, at,
		C.int(len(args.at)))
	s.afterKernel = r == C.planc_ok
	runtime.KeepAlive(args)
	if r == C.planc_ok { // avoids formatting an error in the usual case
		return nil
	}
	return driverError(r, "cuLaunchKernel", "%s, grid %v, block %v, cluster %v, %d bytes of shared memory", k.Name,
		shape.Grid, shape.Block, shape.Cluster, shape.Shared)
}

func extent(v [3]int) (e [3]C.uint) {
	for i := range v {
		e[i] = C.uint(max(v[i], 1))
	}
	return e
}
