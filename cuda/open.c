//go:build cuda && linux

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <string.h>

#include "blaslt.h"
#include "cudnn.h"
#include "driver.h"
#include "nccl.h"
#include "nvml.h"
#include "nvrtc.h"
#include "open.h"

void *planc_open(const char *name, char **why) {
	// RTLD_LOCAL keeps the library apart from another version that someone else has opened.
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *text = dlerror();
		*why = strdup(text ? text : "dlopen failed");
	}
	return library;
}

const char *planc_path(void *library, const char *symbol) {
	Dl_info info;
	void *at = dlsym(library, symbol);
	return at && dladdr(at, &info) ? info.dli_fname : NULL;
}

// BIND fills a field of the table t. POSIX, unlike ISO C, allows the cast from an object's address to a
// function's.
#define BIND(needed, name, params, args) \
	*(void **)&t.name = dlsym(library, #name); \
	if (needed && !t.name && !missing) missing = #name;

struct planc_driver planc_driver;

const char *planc_bind_driver(void *library) {
	struct planc_driver t;
	const char *missing = NULL;
	PLANC_DRIVER(BIND)
	if (!missing) planc_driver = t;
	return missing;
}

#define BIND_TYPED(needed, result, name, params, args) BIND(needed, name, params, args)

struct planc_nccl planc_nccl;

const char *planc_bind_nccl(void *library) {
	struct planc_nccl t;
	const char *missing = NULL;
	PLANC_NCCL(BIND_TYPED)
	if (!missing) planc_nccl = t;
	return missing;
}

struct planc_lt planc_lt;

const char *planc_bind_lt(void *library) {
	struct planc_lt t;
	const char *missing = NULL;
	PLANC_LT(BIND_TYPED)
	if (!missing) planc_lt = t;
	return missing;
}

struct planc_dnn planc_dnn;

const char *planc_bind_dnn(void *library) {
	struct planc_dnn t;
	const char *missing = NULL;
	PLANC_DNN(BIND_TYPED)
	if (!missing) planc_dnn = t;
	return missing;
}

struct planc_nvrtc planc_nvrtc;

const char *planc_bind_nvrtc(void *library) {
	struct planc_nvrtc t;
	const char *missing = NULL;
	PLANC_NVRTC(BIND_TYPED)
	if (!missing) planc_nvrtc = t;
	return missing;
}

struct planc_nvml planc_nvml;

const char *planc_bind_nvml(void *library) {
	struct planc_nvml t;
	const char *missing = NULL;
	PLANC_NVML(BIND_TYPED)
	if (!missing) planc_nvml = t;
	return missing;
}

enum { max_args = 128 };

CUresult planc_launch(CUfunction f, const unsigned g[3], const unsigned b[3], const unsigned cluster[3],
	unsigned shared, int early, CUstream stream, const uint8_t *data, const uint32_t *at, int n) {
	void *params[max_args];
	if (n > max_args) return (CUresult)1; // CUDA_ERROR_INVALID_VALUE
	for (int i = 0; i < n; i++) params[i] = (void *)(data + at[i]);
	if (!cluster[0] && !early) return planc_cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], shared, stream, params, NULL);
	CUlaunchAttribute attrs[2];
	unsigned count = 0;
	memset(attrs, 0, sizeof attrs);
	if (cluster[0]) {
		CUlaunchAttribute *a = &attrs[count++];
		a->id = planc_launch_cluster;
		a->value.clusterDim.x = cluster[0];
		a->value.clusterDim.y = cluster[1];
		a->value.clusterDim.z = cluster[2];
	}
	if (early) {
		CUlaunchAttribute *a = &attrs[count++];
		a->id = planc_launch_early;
		a->value.programmaticStreamSerializationAllowed = 1;
	}
	CUlaunchConfig config = {g[0], g[1], g[2], b[0], b[1], b[2], shared, stream, attrs, count};
	return planc_cuLaunchKernelEx(&config, f, params, NULL);
}

CUresult planc_tiles(planc_tensor_map *map, CUtensorMapDataType type, cuuint32_t rank, CUdeviceptr p, const cuuint64_t *dims, const cuuint64_t *strides,
	const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion) {
	CUtensorMap aligned;
	CUresult r = planc_cuTensorMapEncodeTiled(&aligned, type, rank, (void *)(uintptr_t)p, dims, strides, box, steps, 0, swizzle, promotion, 0);
	if (r == planc_ok) memcpy(map, &aligned, sizeof *map);
	return r;
}
