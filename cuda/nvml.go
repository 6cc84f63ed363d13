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

// NVML is NVIDIA's library of management, open: it tells how busy GPUs are, whoever uses them. Unlike the driver it
// needs no context, and any goroutine may ask it.
type NVML struct{ Path string }

var openNVML = sync.OnceValues(func() (*NVML, error) { return loadNVML(nil) })

// OpenNVML opens NVML where the system finds it. It fails with a [*MissingError], an [*OldError] or an [*Error].
func OpenNVML() (*NVML, error) { return openNVML() }

func loadNVML(folders []string) (*NVML, error) {
	path, err := load(LibraryNamed("NVML"), folders, "nvmlInit_v2", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_nvml(l)
	})
	if err != nil {
		return nil, err
	}
	if err := untold(C.planc_nvmlInit_v2(), "nvmlInit_v2", ""); err != nil {
		return nil, err
	}
	return &NVML{Path: path}, nil
}

// untold is the error of a call of NVML, nil if it succeeded.
func untold(r C.nvmlReturn_t, call, what string, args ...any) error {
	if r == C.planc_nvml_ok {
		return nil
	}
	return &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r), Name: "nvmlReturn_t",
		Text: C.GoString(C.planc_nvmlErrorString(r))}
}

// Gauge tells how busy one GPU is.
type Gauge struct {
	bus    string
	device C.nvmlDevice_t
}

// Gauge finds the GPU with a [Device]'s PCI address.
func (n *NVML) Gauge(bus string) (*Gauge, error) {
	text := C.CString(bus)
	defer C.free(unsafe.Pointer(text))
	var device C.nvmlDevice_t
	if err := untold(C.planc_nvmlDeviceGetHandleByPciBusId_v2(text, &device), "nvmlDeviceGetHandleByPciBusId_v2", "%s",
		bus); err != nil {
		return nil, err
	}
	return &Gauge{bus, device}, nil
}

// Telemetry is how busy a GPU is; NaN is what it does not tell.
type Telemetry struct {
	Busy   float64 // part of the last second or less in which a kernel ran
	Memory float64 // bytes that are taken, by all processes and the driver
	Watts  float64
	MHz    float64 // of the multiprocessors' clock
}

// Read asks. It takes up to some milliseconds.
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
		{"nvmlDeviceGetUtilizationRates", C.planc_nvmlDeviceGetUtilizationRates(g.device, &rates), &u.Busy,
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
		if of.r == C.planc_nvml_unsupported { // as of MIG's instances
			*of.to = math.NaN()
			continue
		}
		if err := untold(of.r, of.call, "%s", g.bus); err != nil {
			return u, err
		}
		*of.to = of.read()
	}
	return u, nil
}
