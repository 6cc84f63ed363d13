// Compiled against the real headers, which declare every call themselves: a prototype of ours that differs in a type
// does not compile. Nothing of it is run.
#include "../driver.h"

// cuda.h redirects some names by macros to what our tables name.
#define SAME(needed, name, params, args) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult (*) params), #name);
PLANC_DRIVER(SAME)

#define NUMBER(ours, theirs) _Static_assert((int)ours == (int)theirs, #theirs);
NUMBER(planc_ok, CUDA_SUCCESS)
NUMBER(planc_not_ready, CUDA_ERROR_NOT_READY)
NUMBER(planc_peer_already, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
NUMBER(planc_attr_multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
NUMBER(planc_attr_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
NUMBER(planc_attr_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
NUMBER(planc_attr_shared_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
NUMBER(planc_func_max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
NUMBER(planc_func_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
NUMBER(planc_func_local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
NUMBER(planc_func_registers, CU_FUNC_ATTRIBUTE_NUM_REGS)
NUMBER(planc_func_dynamic_shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
NUMBER(planc_func_non_portable_cluster, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
NUMBER(planc_stream_non_blocking, CU_STREAM_NON_BLOCKING)
NUMBER(planc_event_no_timing, CU_EVENT_DISABLE_TIMING)
NUMBER(planc_host_portable, CU_MEMHOSTALLOC_PORTABLE)
NUMBER(planc_capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
NUMBER(planc_launch_cluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
NUMBER(500, CUDA_ERROR_NOT_FOUND)
NUMBER(1, CUDA_ERROR_INVALID_VALUE)
NUMBER(6, CU_TENSOR_MAP_DATA_TYPE_FLOAT16) // tensormap.go
NUMBER(7, CU_TENSOR_MAP_DATA_TYPE_FLOAT32)
NUMBER(9, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16)
NUMBER(3, CU_TENSOR_MAP_SWIZZLE_128B)
NUMBER(2, CU_TENSOR_MAP_L2_PROMOTION_L2_128B)
