// NVML's functions, with our own prototypes. testdata/prototypes.c checks them against the real nvml.h.
#ifndef PLANC_NVML_H
#define PLANC_NVML_H

#ifdef PLANC_REAL_HEADERS
#include <nvml.h>
#else
typedef int nvmlReturn_t, nvmlClockType_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
#endif

enum { planc_nvml_ok = 0, planc_nvml_unsupported = 3, planc_nvml_clock_sm = 1 };

// F(needed, result, name, parameters, arguments). All functions exist in drivers of 2016 or earlier.
#define PLANC_NVML(F) \
	F(1, nvmlReturn_t, nvmlInit_v2, (void), ()) \
	F(1, const char *, nvmlErrorString, (nvmlReturn_t result), (result)) \
	F(1, nvmlReturn_t, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, nvmlDevice_t *device), (bus, device)) \
	F(1, nvmlReturn_t, nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t *rates), (device, rates)) \
	F(1, nvmlReturn_t, nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *memory), (device, memory)) \
	F(1, nvmlReturn_t, nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *milliwatts), (device, milliwatts)) \
	F(1, nvmlReturn_t, nvmlDeviceGetClockInfo, (nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz), (device, type, mhz))

#define PLANC_NVML_FIELD(needed, result, name, params, args) result (*name) params;
struct planc_nvml { PLANC_NVML(PLANC_NVML_FIELD) };
extern struct planc_nvml planc_nvml; // filled by planc_bind_nvml

#define PLANC_NVML_CALL(needed, result, name, params, args) \
	static inline result planc_##name params { return planc_nvml.name args; }
PLANC_NVML(PLANC_NVML_CALL)

const char *planc_bind_nvml(void *library);

#endif
