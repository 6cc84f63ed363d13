//go:build cuda && linux

package cuda

/*
#include <stdlib.h>
#include "nvml.h"
#include "open.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// NVML is NVIDIA's open management library. It reports the utilization of GPUs by all processes. Unlike the
// driver it needs no context, and any goroutine may call it.
type NVML struct{ Path string }

var openNVML = sync.OnceValues(func() (*NVML, error) { return loadNVML(nil) })

// OpenNVML opens NVML from the system's library path. It fails with a [*MissingError], an [*OldError] or an
// [*Error].
func OpenNVML() (*NVML, error) { return openNVML() }

func loadNVML(folders []string) (*NVML, error) {
	path, err := load(LibraryNamed("NVML"), folders, "nvmlInit_v2", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_nvml(l)
	})
	if err != nil {
		return nil, err
	}
	if err := nvmlError(C.planc_nvmlInit_v2(), "nvmlInit_v2", ""); err != nil {
		return nil, err
	}
	return &NVML{Path: path}, nil
}

// nvmlError returns the error of a call of NVML, and nil if the call succeeded.
func nvmlError(r C.nvmlReturn_t, call, what string, args ...any) error {
	if r == C.planc_nvml_ok {
		return nil
	}
	return &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r), Name: "nvmlReturn_t",
		Text: C.GoString(C.planc_nvmlErrorString(r))}
}

// Gauge reads the utilization of one GPU.
type Gauge struct {
	bus    string
	device C.nvmlDevice_t
}

// Gauge finds the GPU with the PCI address of a [Device].
func (n *NVML) Gauge(bus string) (*Gauge, error) {
	text := C.CString(bus)
	defer C.free(unsafe.Pointer(text))
	var device C.nvmlDevice_t
	if err := nvmlError(C.planc_nvmlDeviceGetHandleByPciBusId_v2(text, &device),
		"nvmlDeviceGetHandleByPciBusId_v2", "%s",
		bus); err != nil {
		return nil, err
	}
	return &Gauge{bus, device}, nil
}

// Telemetry is the utilization of a GPU. A value that the GPU does not report is NaN.
type Telemetry struct {
	Utilization float64 // fraction of the last second, or less, in which a kernel ran
	Memory      float64 // bytes used by all processes and the driver
	Watts       float64
	MHz         float64 // clock of the multiprocessors
}

// Read reads the values. It takes up to some milliseconds.
func (g *Gauge) Read() (u Telemetry, err error) {
	var rates C.nvmlUtilization_t
	var memory C.nvmlMemory_t
	var milliwatts, mhz C.uint
	for _, of := range []struct {
		call string
		r    C.nvmlReturn_t
		to   *float64
		read func() float64
	}{
		{"nvmlDeviceGetUtilizationRates", C.planc_nvmlDeviceGetUtilizationRates(g.device, &rates), &u.Utilization,
			func() float64 {
				return float64(rates.gpu) / 100
			}},
		{"nvmlDeviceGetMemoryInfo", C.planc_nvmlDeviceGetMemoryInfo(g.device, &memory), &u.Memory, func() float64 {
			return float64(memory.used)
		}},
		{"nvmlDeviceGetPowerUsage", C.planc_nvmlDeviceGetPowerUsage(g.device, &milliwatts), &u.Watts, func() float64 {
			return float64(milliwatts) / 1000
		}},
		{"nvmlDeviceGetClockInfo", C.planc_nvmlDeviceGetClockInfo(g.device, C.planc_nvml_clock_sm, &mhz), &u.MHz,
			func() float64 {
				return float64(mhz)
			}},
	} {
		if of.r == C.planc_nvml_unsupported { // such as MIG instances
			*of.to = math.NaN()
			continue
		}
		if err := nvmlError(of.r, of.call, "%s", g.bus); err != nil {
			return u, err
		}
		*of.to = of.read()
	}
	return u, nil
}
