// The functions of cuDNN's backend, with our own prototypes. testdata/prototypes.c checks them against the
// real cudnn.h.
#ifndef PLANC_CUDNN_H
#define PLANC_CUDNN_H

#include "driver.h"

#ifdef PLANC_REAL_HEADERS
#include <cudnn.h>
#else
typedef int cudnnStatus_t, cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
#ifndef PLANC_BLASLT_H
typedef struct CUstream_st *cudaStream_t;
#endif
#endif

// Kinds of descriptors, their attributes, and the types and values of attributes.
enum {
	planc_dnn_pointwise = 0, planc_dnn_engine = 2, planc_dnn_config = 3, planc_dnn_heuristic = 4, planc_dnn_plan = 5, planc_dnn_op_pointwise = 13, planc_dnn_graph = 15,
	planc_dnn_pack = 16, planc_dnn_tensor = 17, planc_dnn_matmul = 18, planc_dnn_op_matmul = 19, planc_dnn_reduction = 21, planc_dnn_op_reduction = 22, planc_dnn_op_reshape = 31,
	planc_dnn_device = 38
};
enum {
	planc_dnn_pointwise_mode = 0, planc_dnn_pointwise_precision = 1, planc_dnn_pointwise_axis = 9,
	planc_dnn_heuristic_mode = 200, planc_dnn_heuristic_graph = 201, planc_dnn_heuristic_results = 202, planc_dnn_heuristic_device = 204,
	planc_dnn_config_engine = 300, planc_dnn_engine_notes = 1303,
	planc_dnn_plan_handle = 400, planc_dnn_plan_config = 401, planc_dnn_plan_workspace = 402, planc_dnn_plan_device = 407,
	planc_dnn_op_pointwise_desc = 750, planc_dnn_op_pointwise_x = 751, planc_dnn_op_pointwise_b = 752, planc_dnn_op_pointwise_y = 753, planc_dnn_op_pointwise_t = 758,
	planc_dnn_graph_handle = 800, planc_dnn_graph_ops = 801,
	planc_dnn_tensor_alignment = 900, planc_dnn_tensor_type = 901, planc_dnn_tensor_dims = 902, planc_dnn_tensor_strides = 903, planc_dnn_tensor_uid = 906, planc_dnn_tensor_virtual = 907,
	planc_dnn_tensor_value = 908,
	planc_dnn_pack_uids = 1000, planc_dnn_pack_pointers = 1001, planc_dnn_pack_workspace = 1003,
	planc_dnn_matmul_precision = 1500, planc_dnn_op_matmul_a = 1520, planc_dnn_op_matmul_b = 1521, planc_dnn_op_matmul_c = 1522, planc_dnn_op_matmul_desc = 1523,
	planc_dnn_reduction_kind = 1600, planc_dnn_reduction_precision = 1601, planc_dnn_reduction_deterministic = 1602,
	planc_dnn_op_reduction_x = 1610, planc_dnn_op_reduction_y = 1611, planc_dnn_op_reduction_desc = 1612,
	planc_dnn_op_reshape_x = 2200, planc_dnn_op_reshape_y = 2201, planc_dnn_device_json = 2702
};
enum {
	planc_dnn_of_handle = 0, planc_dnn_of_type = 1, planc_dnn_of_flag = 2, planc_dnn_of_int64 = 3, planc_dnn_of_pointer = 6, planc_dnn_of_heuristic = 8, planc_dnn_of_note = 11,
	planc_dnn_of_pointwise = 14, planc_dnn_of_descriptor = 15, planc_dnn_of_reduction = 18, planc_dnn_of_char = 24
};
enum {
	planc_dnn_f32 = 0, planc_dnn_f16 = 2, planc_dnn_i32 = 4, planc_dnn_bf16 = 9, planc_dnn_bool = 11,
	planc_dnn_add = 0, planc_dnn_mul = 1, planc_dnn_div = 6, planc_dnn_sub = 9, planc_dnn_exp = 13, planc_dnn_log = 15, planc_dnn_gt = 302, planc_dnn_ge = 303, planc_dnn_index = 501,
	planc_dnn_select = 601,
	planc_dnn_sum = 0, planc_dnn_max = 3,
	planc_dnn_mode_a = 3, planc_dnn_nondeterministic = 4, planc_dnn_not_supported = 3000
};

// F(needed, result, name, parameters, arguments).
#define PLANC_DNN(F) \
	F(1, size_t, cudnnGetVersion, (void), ()) \
	F(1, const char *, cudnnGetErrorString, (cudnnStatus_t status), (status)) \
	F(0, void, cudnnGetLastErrorString, (char *message, size_t size), (message, size)) \
	F(1, cudnnStatus_t, cudnnCreate, (cudnnHandle_t *handle), (handle)) \
	F(1, cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle), (handle)) \
	F(1, cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream), (handle, stream)) \
	F(1, cudnnStatus_t, cudnnBackendCreateDescriptor, (cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *d), (kind, d)) \
	F(1, cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t d), (d)) \
	F(1, cudnnStatus_t, cudnnBackendSetAttribute, (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t n, const void *values), (d, what, type, n, values)) \
	F(1, cudnnStatus_t, cudnnBackendGetAttribute, (cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *values), (d, what, type, room, n, values)) \
	F(1, cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t d), (d)) \
	F(1, cudnnStatus_t, cudnnBackendExecute, (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack), (handle, plan, pack))

#define PLANC_DNN_FIELD(needed, result, name, params, args) result (*name) params;
struct planc_dnn { PLANC_DNN(PLANC_DNN_FIELD) };
extern struct planc_dnn planc_dnn; // filled by planc_bind_dnn

#define PLANC_DNN_CALL(needed, result, name, params, args) \
	static inline result planc_##name params { return planc_dnn.name args; }
PLANC_DNN(PLANC_DNN_CALL)

const char *planc_bind_dnn(void *library);

#endif
