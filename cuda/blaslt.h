// cuBLASLt's functions, with our own prototypes. testdata/prototypes.c checks them against the real
// cublasLt.h.
#ifndef PLANC_BLASLT_H
#define PLANC_BLASLT_H

#include "driver.h"

#ifdef PLANC_REAL_HEADERS
#include <cublasLt.h>
#else
typedef int cublasStatus_t, cublasComputeType_t, cudaDataType_t, cudaDataType, cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
	cublasLtMatmulPreferenceAttributes_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct planc_lt_desc *cublasLtMatmulDesc_t;
typedef struct planc_lt_layout *cublasLtMatrixLayout_t;
typedef struct planc_lt_preference *cublasLtMatmulPreference_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef struct CUstream_st *cudaStream_t;
#endif

_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96 && offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "as cuBLASLt lays it out");

enum {
	planc_lt_trans_a = 3, planc_lt_trans_b = 4, planc_lt_epilogue = 7, planc_lt_bias = 8, planc_lt_aux = 11, planc_lt_aux_ld = 12, planc_lt_aux_stride = 13, planc_lt_bias_type = 26, planc_lt_scale_a = 17, planc_lt_scale_b = 18,
	planc_lt_batch = 5, planc_lt_stride = 6,
	planc_lt_workspace = 1, planc_lt_align_a = 5, planc_lt_align_b = 6, planc_lt_align_c = 7, planc_lt_align_d = 8,
	planc_lt_compute_32f = 68, planc_lt_compute_tf32 = 77, planc_lt_compute_64f = 70,
	planc_lt_f32 = 0, planc_lt_f64 = 1,
	planc_lt_not_supported = 15
};

// F(needed, result, name, parameters, arguments). All needed functions exist since the library's first
// version.
#define PLANC_LT(F) \
	F(1, size_t, cublasLtGetVersion, (void), ()) \
	F(0, const char *, cublasLtGetStatusName, (cublasStatus_t status), (status)) \
	F(0, const char *, cublasLtGetStatusString, (cublasStatus_t status), (status)) \
	F(1, cublasStatus_t, cublasLtCreate, (cublasLtHandle_t *handle), (handle)) \
	F(1, cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), (handle)) \
	F(1, cublasStatus_t, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale), (desc, compute, scale)) \
	F(1, cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc), (desc)) \
	F(1, cublasStatus_t, cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const void *value, size_t size), (desc, what, value, size)) \
	F(1, cublasStatus_t, cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld), (layout, type, rows, cols, ld)) \
	F(1, cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout)) \
	F(1, cublasStatus_t, cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, const void *value, size_t size), (layout, what, value, size)) \
	F(1, cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t *preference), (preference)) \
	F(1, cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference), (preference)) \
	F(1, cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, const void *value, size_t size), (preference, what, value, size)) \
	F(1, cublasStatus_t, cublasLtMatmulAlgoGetHeuristic, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int want, cublasLtMatmulHeuristicResult_t *results, int *got), (handle, desc, a, b, c, d, preference, want, results, got)) \
	F(1, cublasStatus_t, cublasLtMatmul, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t stream), (handle, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, workspace, size, stream))

#define PLANC_LT_FIELD(needed, result, name, params, args) result (*name) params;
struct planc_lt { PLANC_LT(PLANC_LT_FIELD) };
extern struct planc_lt planc_lt; // filled by planc_bind_lt

#define PLANC_LT_CALL(needed, result, name, params, args) \
	static inline result planc_##name params { return planc_lt.name args; }
PLANC_LT(PLANC_LT_CALL)

const char *planc_bind_lt(void *library);

// planc_lt_name and planc_lt_text return the library's texts for a status. Versions before 11.4.2 have
// none.
static inline const char *planc_lt_name(cublasStatus_t s) { return planc_lt.cublasLtGetStatusName ? planc_lt.cublasLtGetStatusName(s) : "a status"; }
static inline const char *planc_lt_text(cublasStatus_t s) { return planc_lt.cublasLtGetStatusString ? planc_lt.cublasLtGetStatusString(s) : "cuBLASLt refuses it"; }

// A GEMM with chosen types, sizes and algorithm: D = op(A) op(B) + beta C, column-major.
struct planc_product {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algo;
};

// planc_multiply enqueues a GEMM on a stream. If wide is set, alpha and beta are passed as doubles.
static inline cublasStatus_t planc_multiply(cublasLtHandle_t handle, const struct planc_product *p, int wide, double alpha, double beta,
	CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr d, CUdeviceptr workspace, size_t size, CUstream stream) {
	float alpha32 = (float)alpha, beta32 = (float)beta;
	const void *scale = wide ? (void *)&alpha : (void *)&alpha32, *add = wide ? (void *)&beta : (void *)&beta32;
	return planc_cublasLtMatmul(handle, p->desc, scale, (void *)(uintptr_t)a, p->a, (void *)(uintptr_t)b, p->b, add, (void *)(uintptr_t)c, p->d, (void *)(uintptr_t)d, p->d,
		&p->algo, (void *)(uintptr_t)workspace, size, (cudaStream_t)stream);
}

#endif
