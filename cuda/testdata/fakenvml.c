// NVML with two GPUs, for tests; the second does not report its power. Built as libnvidia-ml.so.1.
#include "fake.h"
#include "../nvml.h"

struct nvmlDevice_st { int number; };
static struct nvmlDevice_st devices[2] = {{0}, {1}};

#define CALL(name, params, ...) \
	nvmlReturn_t name params { \
		int r = told(#name); \
		if (!r) { __VA_ARGS__ } \
		return r; \
	}

const char *nvmlErrorString(nvmlReturn_t r) { return r == 15 ? "GPU is lost" : r == 6 ? "Not Found" : "Error"; }
CALL(nvmlInit_v2, (void), say("nvml started");)
CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, nvmlDevice_t *d),
	if (!strcmp(bus, "0000:01:00.0")) *d = &devices[0];
	else if (!strcmp(bus, "0000:02:00.0")) *d = &devices[1];
	else r = 6;)
CALL(nvmlDeviceGetUtilizationRates, (nvmlDevice_t d, nvmlUtilization_t *u), u->gpu = 97 + d->number; u->memory = 40;)
CALL(nvmlDeviceGetMemoryInfo, (nvmlDevice_t d, nvmlMemory_t *m), m->total = 80ull << 30; m->used = 5ull << 30; m->free = m->total - m->used; (void)d;)
CALL(nvmlDeviceGetPowerUsage, (nvmlDevice_t d, unsigned *mw), if (d->number) r = 3; else *mw = 612500;)
CALL(nvmlDeviceGetClockInfo, (nvmlDevice_t d, nvmlClockType_t t, unsigned *mhz), (void)d; *mhz = t == 1 ? 1755 : 0;)
