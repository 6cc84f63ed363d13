// NVML: any number of GPUs, all equally busy.
#include <stdlib.h>
#include <string.h>
extern "C" {
#include "nvml.h"
}

#define PROTOTYPE(needed, result, name, params, args) extern "C" result name params;
PLANC_NVML(PROTOTYPE)

struct nvmlDevice_st { int number; };

const char *nvmlErrorString(nvmlReturn_t) { return "no such emulated GPU"; }
nvmlReturn_t nvmlInit_v2(void) { return 0; }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *to) {
	static nvmlDevice_st all[256];
	const char *n = getenv("PLANC_EMULATED_GPUS");
	int number = strlen(bus) < 7 ? 0 : (int)strtol(bus + 5, NULL, 16); // cuDeviceGetPCIBusId counts from 1
	if (number < 1 || number > (n && *n ? atoi(n) : 8)) return 6;
	all[number].number = number;
	return *to = &all[number], 0;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t *u) { return u->gpu = 75, u->memory = 25, 0; }
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t *m) { return m->total = 80ull << 30, m->used = 1ull << 30, m->free = m->total - m->used, 0; }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) { return *mw = 500000 + (unsigned)d->number, 0; }
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t, unsigned int *mhz) { return *mhz = 1500, 0; }
