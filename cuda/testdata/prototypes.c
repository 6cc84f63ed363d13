// Compiled against the real headers, which declare every call themselves: a prototype of ours that differs in a type
// does not compile. Nothing of it is run. Held against CUDA 13.5, cuBLAS 13.10, NCCL 2.32 and NVML 13 (2026-11-22); .ci/run has cuda.h and nvrtc.h.
#include "../driver.h"
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#define HAS_NCCL
#include "../nccl.h"
#endif
#if __has_include(<cublasLt.h>)
#define HAS_LT
#include "../blaslt.h"
#endif

// cuda.h redirects some names by macros to what our tables name.
#if __has_include(<nvrtc.h>)
#define HAS_NVRTC
#include "../nvrtc.h"
#endif

#if __has_include(<nvml.h>)
#define HAS_NVML
#include "../nvml.h"
#endif

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

#define SAME_TYPED(needed, result, name, params, args) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), result (*) params), #name);

#ifdef HAS_NCCL
PLANC_NCCL(SAME_TYPED)
#define SAME_FIELD(field) _Static_assert(offsetof(struct planc_nccl_config, field) == offsetof(ncclConfig_t, field), #field);
SAME_FIELD(size) SAME_FIELD(magic) SAME_FIELD(version) SAME_FIELD(blocking) SAME_FIELD(cgaClusterSize) SAME_FIELD(maxCTAs) SAME_FIELD(netName) SAME_FIELD(splitShare)
_Static_assert(sizeof(ncclUniqueId) == 128, "as nccl.go has it");
NUMBER(planc_nccl_ok, ncclSuccess)
NUMBER(planc_nccl_in_progress, ncclInProgress)
NUMBER(planc_nccl_unset, NCCL_CONFIG_UNDEF_INT)
NUMBER(0, ncclSum) // nccl.go
NUMBER(2, ncclMax)
NUMBER(4, ncclAvg)
NUMBER(2, ncclInt32)
NUMBER(6, ncclFloat16)
NUMBER(7, ncclFloat32)
NUMBER(8, ncclFloat64)
NUMBER(9, ncclBfloat16)
#endif

#ifdef HAS_LT
PLANC_LT(SAME_TYPED)
NUMBER(planc_lt_trans_a, CUBLASLT_MATMUL_DESC_TRANSA)
NUMBER(planc_lt_trans_b, CUBLASLT_MATMUL_DESC_TRANSB)
NUMBER(planc_lt_epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE)
NUMBER(planc_lt_bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
NUMBER(planc_lt_aux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER)
NUMBER(planc_lt_aux_ld, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)
NUMBER(planc_lt_aux_stride, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE)
NUMBER(planc_lt_bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)
NUMBER(planc_lt_scale_a, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER)
NUMBER(planc_lt_scale_b, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER)
NUMBER(planc_lt_batch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
NUMBER(planc_lt_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
NUMBER(planc_lt_workspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
NUMBER(planc_lt_align_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
NUMBER(planc_lt_align_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
NUMBER(planc_lt_align_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
NUMBER(planc_lt_align_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
NUMBER(planc_lt_compute_32f, CUBLAS_COMPUTE_32F)
NUMBER(planc_lt_compute_tf32, CUBLAS_COMPUTE_32F_FAST_TF32)
NUMBER(planc_lt_compute_64f, CUBLAS_COMPUTE_64F)
NUMBER(planc_lt_f32, CUDA_R_32F)
NUMBER(planc_lt_f64, CUDA_R_64F)
NUMBER(2, CUDA_R_16F) // blaslt.go
NUMBER(14, CUDA_R_16BF)
NUMBER(1, CUBLASLT_EPILOGUE_DEFAULT)
NUMBER(4, CUBLASLT_EPILOGUE_BIAS)
NUMBER(32, CUBLASLT_EPILOGUE_GELU)
NUMBER(36, CUBLASLT_EPILOGUE_GELU_BIAS)
NUMBER(planc_lt_not_supported, CUBLAS_STATUS_NOT_SUPPORTED)
NUMBER(164, CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
NUMBER(160, CUBLASLT_EPILOGUE_GELU_AUX)
NUMBER(192, CUBLASLT_EPILOGUE_DGELU)
NUMBER(208, CUBLASLT_EPILOGUE_DGELU_BGRAD)
NUMBER(256, CUBLASLT_EPILOGUE_BGRADA)
NUMBER(1, CUBLAS_OP_T)
#endif

#ifdef HAS_NVRTC
PLANC_NVRTC(SAME_TYPED)
NUMBER(planc_nvrtc_ok, NVRTC_SUCCESS)
NUMBER(planc_nvrtc_compilation, NVRTC_ERROR_COMPILATION)
#endif

#ifdef HAS_NVML
PLANC_NVML(SAME_TYPED)
NUMBER(planc_nvml_ok, NVML_SUCCESS)
NUMBER(planc_nvml_unsupported, NVML_ERROR_NOT_SUPPORTED)
NUMBER(planc_nvml_clock_sm, NVML_CLOCK_SM)
#endif
