// The functions of the NVIDIA driver that this package calls, with our own prototypes: building needs
// neither cuda.h nor libcuda. testdata/prototypes.c checks them against the real cuda.h.
#ifndef PLANC_DRIVER_H
#define PLANC_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef PLANC_REAL_HEADERS
#include <cuda.h>
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUstreamCaptureMode;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct { // an attribute of a launch that cuLaunchKernel does not have; value is a union of 64 bytes
	int id;
	int pad;
	union {
		char bytes[64];
		struct { unsigned x, y, z; } clusterDim;
		int programmaticStreamSerializationAllowed;
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

// A tensor map is 128 opaque bytes; its enums are ints.
typedef struct { _Alignas(128) uint64_t opaque[16]; } CUtensorMap;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
#endif

// The driver's constants that are used. The numbers are part of its ABI.
enum {
	planc_ok = 0, planc_not_ready = 600, planc_peer_already = 704,
	planc_attr_multiprocessors = 16, planc_attr_major = 75, planc_attr_minor = 76, planc_attr_shared_optin = 97,
	planc_func_max_threads = 0, planc_func_shared = 1, planc_func_local = 3, planc_func_registers = 4,
	planc_func_dynamic_shared = 8, planc_func_non_portable_cluster = 14,
	planc_stream_non_blocking = 1, planc_event_no_timing = 2, planc_host_portable = 1,
	planc_capture_thread_local = 1, planc_launch_cluster = 4, planc_launch_early = 6, planc_graph_node_priorities = 8
};

_Static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, hStream) == 32, "as the driver lays it out");
_Static_assert(sizeof(CUlaunchAttribute) == 72 && offsetof(CUlaunchAttribute, value) == 8, "as the driver lays it out");

// F(needed, name, parameters, arguments). needed is 1 if planc does not support drivers without the
// function.
#define PLANC_DRIVER(F) \
	F(1, cuInit, (unsigned int flags), (flags)) \
	F(1, cuDriverGetVersion, (int *version), (version)) \
	F(1, cuGetErrorName, (CUresult error, const char **text), (error, text)) \
	F(1, cuGetErrorString, (CUresult error, const char **text), (error, text)) \
	F(1, cuDeviceGetCount, (int *count), (count)) \
	F(1, cuDeviceGet, (CUdevice *device, int ordinal), (device, ordinal)) \
	F(1, cuDeviceGetName, (char *name, int len, CUdevice device), (name, len, device)) \
	F(1, cuDeviceGetPCIBusId, (char *id, int len, CUdevice device), (id, len, device)) \
	F(1, cuDeviceGetAttribute, (int *value, CUdevice_attribute what, CUdevice device), (value, what, device)) \
	F(1, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device), (bytes, device)) \
	F(1, cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer), (can, device, peer)) \
	F(1, cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device), (context, device)) \
	F(1, cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device)) \
	F(1, cuCtxSetCurrent, (CUcontext context), (context)) \
	F(1, cuCtxGetCurrent, (CUcontext *context), (context)) \
	F(1, cuCtxSynchronize, (void), ()) \
	F(1, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), (peer, flags)) \
	F(1, cuModuleLoadData, (CUmodule *module, const void *image), (module, image)) \
	F(1, cuModuleUnload, (CUmodule module), (module)) \
	F(1, cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name), (function, module, name)) \
	F(0, cuModuleGetFunctionCount, (unsigned int *count, CUmodule module), (count, module)) \
	F(0, cuModuleEnumerateFunctions, (CUfunction *functions, unsigned int count, CUmodule module), (functions, count, module)) \
	F(0, cuFuncLoad, (CUfunction function), (function)) \
	F(1, cuFuncSetAttribute, (CUfunction function, CUfunction_attribute what, int value), (function, what, value)) \
	F(1, cuFuncGetAttribute, (int *value, CUfunction_attribute what, CUfunction function), (value, what, function)) \
	F(1, cuLaunchKernel, (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra), (function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)) \
	F(0, cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **params, void **extra), (config, function, params, extra)) \
	F(0, cuTensorMapEncodeTiled, (CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill), (map, type, rank, address, dims, strides, box, steps, interleave, swizzle, promotion, fill)) \
	F(1, cuMemGetInfo_v2, (size_t *available, size_t *total), (available, total)) \
	F(1, cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes), (p, bytes)) \
	F(1, cuMemFree_v2, (CUdeviceptr p), (p)) \
	F(1, cuMemHostAlloc, (void **p, size_t bytes, unsigned int flags), (p, bytes, flags)) \
	F(1, cuMemFreeHost, (void *p), (p)) \
	F(1, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	F(1, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	F(1, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	F(1, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream), (to, value, count, stream)) \
	F(1, cuStreamCreateWithPriority, (CUstream *stream, unsigned int flags, int priority), (stream, flags, priority)) \
	F(1, cuStreamDestroy_v2, (CUstream stream), (stream)) \
	F(1, cuStreamSynchronize, (CUstream stream), (stream)) \
	F(1, cuStreamQuery, (CUstream stream), (stream)) \
	F(1, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), (stream, event, flags)) \
	F(1, cuEventCreate, (CUevent *event, unsigned int flags), (event, flags)) \
	F(1, cuEventDestroy_v2, (CUevent event), (event)) \
	F(1, cuEventRecord, (CUevent event, CUstream stream), (event, stream)) \
	F(1, cuEventSynchronize, (CUevent event), (event)) \
	F(1, cuEventElapsedTime, (float *milliseconds, CUevent from, CUevent to), (milliseconds, from, to)) \
	F(1, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode)) \
	F(1, cuStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph)) \
	F(1, cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, unsigned long long flags), (exec, graph, flags)) \
	F(1, cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream)) \
	F(1, cuGraphExecDestroy, (CUgraphExec exec), (exec)) \
	F(1, cuGraphDestroy, (CUgraph graph), (graph))

#define PLANC_FIELD(needed, name, params, args) CUresult (*name) params;
struct planc_driver { PLANC_DRIVER(PLANC_FIELD) };
extern struct planc_driver planc_driver; // filled by planc_bind

// planc_NAME calls the function. If the library does not have it, it returns CUDA_ERROR_NOT_FOUND as the
// driver would.
#define PLANC_CALL(needed, name, params, args) \
	static inline CUresult planc_##name params { return planc_driver.name ? planc_driver.name args : (CUresult)500; }
PLANC_DRIVER(PLANC_CALL)

// planc_launch launches a kernel whose argument i begins at data[at[i]]. cluster is {0} without clusters. If early is 1,
// the kernel may begin before the previous one of the stream has ended (programmatic dependent launch).
CUresult planc_launch(CUfunction f, const unsigned grid[3], const unsigned block[3], const unsigned cluster[3],
	unsigned shared, int early, CUstream stream, const uint8_t *data, const uint32_t *at, int n);

// planc_tiles encodes a tensor map. The driver requires an alignment that Go does not guarantee.
typedef struct { uint8_t bytes[128]; } planc_tensor_map;
CUresult planc_tiles(planc_tensor_map *map, CUtensorMapDataType type, cuuint32_t rank, CUdeviceptr p, const cuuint64_t *dims, const cuuint64_t *strides,
	const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion);

#endif
