// This file is compiled against the real headers, which declare every call themselves: a prototype of ours
// that differs in a type does not compile. Nothing in it is executed. Checked with CUDA 13.5, cuBLAS 13.10,
// cuDNN 9.26, NCCL 2.30.7 and 2.32, and NVML 13 (2026-11-22); .ci/run has cuda.h and nvrtc.h.
#include "../driver.h"
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#define HAS_NCCL
#include "../nccl.h"
#endif
#if __has_include(<cublasLt.h>)
#define HAS_LT
#include "../blaslt.h"
#endif

// cuda.h redirects some names by macros to the names in our tables.
#if __has_include(<nvrtc.h>)
#define HAS_NVRTC
#include "../nvrtc.h"
#endif

// cudnn.h needs cuda_runtime.h
#if __has_include(<cudnn.h>) && __has_include(<cuda_runtime.h>)
#define HAS_DNN
#include "../cudnn.h"
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

#ifdef HAS_DNN
PLANC_DNN(SAME_TYPED)
NUMBER(planc_dnn_pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
NUMBER(planc_dnn_engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR)
NUMBER(planc_dnn_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
NUMBER(planc_dnn_heuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
NUMBER(planc_dnn_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
NUMBER(planc_dnn_op_pointwise, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
NUMBER(planc_dnn_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
NUMBER(planc_dnn_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
NUMBER(planc_dnn_tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
NUMBER(planc_dnn_matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR)
NUMBER(planc_dnn_op_matmul, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
NUMBER(planc_dnn_reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
NUMBER(planc_dnn_op_reduction, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
NUMBER(planc_dnn_op_reshape, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
NUMBER(planc_dnn_device, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
NUMBER(planc_dnn_pointwise_mode, CUDNN_ATTR_POINTWISE_MODE)
NUMBER(planc_dnn_pointwise_precision, CUDNN_ATTR_POINTWISE_MATH_PREC)
NUMBER(planc_dnn_pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS)
NUMBER(planc_dnn_heuristic_mode, CUDNN_ATTR_ENGINEHEUR_MODE)
NUMBER(planc_dnn_heuristic_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
NUMBER(planc_dnn_heuristic_results, CUDNN_ATTR_ENGINEHEUR_RESULTS)
NUMBER(planc_dnn_heuristic_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP)
NUMBER(planc_dnn_config_engine, CUDNN_ATTR_ENGINECFG_ENGINE)
NUMBER(planc_dnn_engine_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
NUMBER(planc_dnn_plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
NUMBER(planc_dnn_plan_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
NUMBER(planc_dnn_plan_workspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
NUMBER(planc_dnn_plan_device, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)
NUMBER(planc_dnn_op_pointwise_desc, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
NUMBER(planc_dnn_op_pointwise_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)
NUMBER(planc_dnn_op_pointwise_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC)
NUMBER(planc_dnn_op_pointwise_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC)
NUMBER(planc_dnn_op_pointwise_t, CUDNN_ATTR_OPERATION_POINTWISE_TDESC)
NUMBER(planc_dnn_graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
NUMBER(planc_dnn_graph_ops, CUDNN_ATTR_OPERATIONGRAPH_OPS)
NUMBER(planc_dnn_tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)
NUMBER(planc_dnn_tensor_type, CUDNN_ATTR_TENSOR_DATA_TYPE)
NUMBER(planc_dnn_tensor_dims, CUDNN_ATTR_TENSOR_DIMENSIONS)
NUMBER(planc_dnn_tensor_strides, CUDNN_ATTR_TENSOR_STRIDES)
NUMBER(planc_dnn_tensor_uid, CUDNN_ATTR_TENSOR_UNIQUE_ID)
NUMBER(planc_dnn_tensor_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL)
NUMBER(planc_dnn_tensor_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE)
NUMBER(planc_dnn_pack_uids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
NUMBER(planc_dnn_pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
NUMBER(planc_dnn_pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)
NUMBER(planc_dnn_matmul_precision, CUDNN_ATTR_MATMUL_COMP_TYPE)
NUMBER(planc_dnn_op_matmul_a, CUDNN_ATTR_OPERATION_MATMUL_ADESC)
NUMBER(planc_dnn_op_matmul_b, CUDNN_ATTR_OPERATION_MATMUL_BDESC)
NUMBER(planc_dnn_op_matmul_c, CUDNN_ATTR_OPERATION_MATMUL_CDESC)
NUMBER(planc_dnn_op_matmul_desc, CUDNN_ATTR_OPERATION_MATMUL_DESC)
NUMBER(planc_dnn_reduction_kind, CUDNN_ATTR_REDUCTION_OPERATOR)
NUMBER(planc_dnn_reduction_precision, CUDNN_ATTR_REDUCTION_COMP_TYPE)
NUMBER(planc_dnn_op_reduction_x, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)
NUMBER(planc_dnn_op_reduction_y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)
NUMBER(planc_dnn_op_reduction_desc, CUDNN_ATTR_OPERATION_REDUCTION_DESC)
NUMBER(planc_dnn_op_reshape_x, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)
NUMBER(planc_dnn_op_reshape_y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC)
NUMBER(planc_dnn_reduction_deterministic, CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC)
NUMBER(planc_dnn_device_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)
NUMBER(planc_dnn_of_handle, CUDNN_TYPE_HANDLE)
NUMBER(planc_dnn_of_type, CUDNN_TYPE_DATA_TYPE)
NUMBER(planc_dnn_of_flag, CUDNN_TYPE_BOOLEAN)
NUMBER(planc_dnn_of_int64, CUDNN_TYPE_INT64)
NUMBER(planc_dnn_of_pointer, CUDNN_TYPE_VOID_PTR)
NUMBER(planc_dnn_of_heuristic, CUDNN_TYPE_HEUR_MODE)
NUMBER(planc_dnn_of_note, CUDNN_TYPE_NUMERICAL_NOTE)
NUMBER(planc_dnn_of_pointwise, CUDNN_TYPE_POINTWISE_MODE)
NUMBER(planc_dnn_of_descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR)
NUMBER(planc_dnn_of_reduction, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE)
NUMBER(planc_dnn_of_char, CUDNN_TYPE_CHAR)
NUMBER(planc_dnn_f32, CUDNN_DATA_FLOAT)
NUMBER(planc_dnn_f16, CUDNN_DATA_HALF)
NUMBER(planc_dnn_i32, CUDNN_DATA_INT32)
NUMBER(planc_dnn_bf16, CUDNN_DATA_BFLOAT16)
NUMBER(planc_dnn_bool, CUDNN_DATA_BOOLEAN)
NUMBER(planc_dnn_add, CUDNN_POINTWISE_ADD)
NUMBER(planc_dnn_mul, CUDNN_POINTWISE_MUL)
NUMBER(planc_dnn_div, CUDNN_POINTWISE_DIV)
NUMBER(planc_dnn_sub, CUDNN_POINTWISE_SUB)
NUMBER(planc_dnn_exp, CUDNN_POINTWISE_EXP)
NUMBER(planc_dnn_log, CUDNN_POINTWISE_LOG)
NUMBER(planc_dnn_gt, CUDNN_POINTWISE_CMP_GT)
NUMBER(planc_dnn_ge, CUDNN_POINTWISE_CMP_GE)
NUMBER(planc_dnn_index, CUDNN_POINTWISE_GEN_INDEX)
NUMBER(planc_dnn_select, CUDNN_POINTWISE_BINARY_SELECT)
NUMBER(planc_dnn_sum, CUDNN_REDUCE_TENSOR_ADD)
NUMBER(planc_dnn_max, CUDNN_REDUCE_TENSOR_MAX)
NUMBER(planc_dnn_mode_a, CUDNN_HEUR_MODE_A)
NUMBER(planc_dnn_nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
NUMBER(planc_dnn_not_supported, CUDNN_STATUS_NOT_SUPPORTED)
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
