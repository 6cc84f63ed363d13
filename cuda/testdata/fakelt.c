// cuBLASLt without a GPU, for tests: column-major GEMMs of f32 and f64 on the host, with the epilogues that
// add a bias, sum its gradient, or store the input of GELU, but without GELU. Built as libcublasLt.so.13.
#include "fake.h"
#include "../blaslt.h"

enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

struct planc_lt_desc { int compute, scale, trans[2], epilogue; void *bias, *aux; int64_t aux_ld, aux_stride; void *scales[2]; };
struct planc_lt_layout { int type, batch; uint64_t rows, cols; int64_t ld, stride; };
struct planc_lt_preference { size_t workspace; uint32_t align[4]; };
static int open; // descriptors that are not destroyed

#define CALL(name, params, ...) \
	cublasStatus_t name params { \
		int r = told(#name); \
		if (!r) { __VA_ARGS__ } \
		return r; \
	}

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(cublasStatus_t s) { return s == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS"; }
const char *cublasLtGetStatusString(cublasStatus_t s) { return s == NOT_SUPPORTED ? "the functionality requested is not supported" : "refused"; }
CALL(cublasLtCreate, (cublasLtHandle_t *h), *h = malloc(1);)
CALL(cublasLtDestroy, (cublasLtHandle_t h), say("descriptors left: %d", open); free(h);)

#define MAKE(p) *p = calloc(1, sizeof **p); open++;
#define UNMAKE(p) free(p); open--;
CALL(cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *d, cublasComputeType_t c, cudaDataType_t s), MAKE(d) (*d)->compute = c; (*d)->scale = s; (*d)->epilogue = 1;)
CALL(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t d), UNMAKE(d))
CALL(cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t *l, cudaDataType t, uint64_t rows, uint64_t cols, int64_t ld), MAKE(l) **l = (struct planc_lt_layout){t, 1, rows, cols, ld, 0};)
CALL(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t l), UNMAKE(l))
CALL(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t *p), MAKE(p) for (int i = 0; i < 4; i++) (*p)->align[i] = 256;)
CALL(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t p), UNMAKE(p))

// take copies an attribute if it has the right size.
static int take(void *to, size_t want, const void *value, size_t size) {
	if (size != want) return INVALID_VALUE;
	memcpy(to, value, size);
	return 0;
}
CALL(cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *v, size_t n), int32_t unused;
	r = what == planc_lt_trans_a ? take(&d->trans[0], 4, v, n) : what == planc_lt_trans_b ? take(&d->trans[1], 4, v, n) : what == planc_lt_epilogue ? take(&d->epilogue, 4, v, n)
		: what == planc_lt_scale_a || what == planc_lt_scale_b ? take(&d->scales[what - planc_lt_scale_a], 8, v, n) : what == planc_lt_bias ? take(&d->bias, 8, v, n) : what == planc_lt_bias_type ? take(&unused, 4, v, n)
		: what == planc_lt_aux ? take(&d->aux, 8, v, n) : what == planc_lt_aux_ld ? take(&d->aux_ld, 8, v, n) : what == planc_lt_aux_stride ? take(&d->aux_stride, 8, v, n) : INVALID_VALUE;)
CALL(cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what, const void *v, size_t n),
	r = what == planc_lt_batch ? take(&l->batch, 4, v, n) : what == planc_lt_stride ? take(&l->stride, 8, v, n) : INVALID_VALUE;)
CALL(cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, const void *v, size_t n),
	r = what == planc_lt_workspace ? take(&p->workspace, 8, v, n)
		: what >= planc_lt_align_a && what <= planc_lt_align_d ? take(&p->align[what - planc_lt_align_a], 4, v, n) : INVALID_VALUE;)

// fits reports whether op(A) op(B) has the shape of D.
static int fits(cublasLtMatmulDesc_t x, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
	uint64_t m = x->trans[0] ? a->cols : a->rows, k = x->trans[0] ? a->rows : a->cols, k2 = x->trans[1] ? b->cols : b->rows, n = x->trans[1] ? b->rows : b->cols;
	return m == d->rows && n == d->cols && k == k2 && a->batch == d->batch && b->batch == d->batch && a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows && d->ld >= (int64_t)d->rows;
}
CALL(cublasLtMatmulAlgoGetHeuristic, (cublasLtHandle_t h, cublasLtMatmulDesc_t x, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
	cublasLtMatmulPreference_t p, int want, cublasLtMatmulHeuristicResult_t *results, int *got), (void)h; (void)c;
	if (!fits(x, a, b, d)) r = INVALID_VALUE;
	else if (a->type > 1) r = NOT_SUPPORTED;
	else {
		*got = p->workspace < 1024 ? 0 : want < 3 ? want : 3;
		memset(results, 0, *got * sizeof *results);
		for (int way = 0; way < *got; way++) {
			results[way].algo.data[0] = 42;
			// as if it needed every alignment that is promised
			for (int i = 0; i < 4; i++) results[way].algo.data[1 + i] = p->align[i];
			results[way].algo.data[5] = way;
			results[way].workspaceSize = 1024;
		}
	})

static double get(const void *p, int type, uint64_t i) { return type == 1 ? ((const double *)p)[i] : ((const float *)p)[i]; }
static void set(void *p, int type, uint64_t i, double v) {
	if (type == 1) ((double *)p)[i] = v;
	else ((float *)p)[i] = (float)v;
}
static uint64_t at(cublasLtMatrixLayout_t l, int batch, uint64_t row, uint64_t col) { return batch * l->stride + col * l->ld + row; }

CALL(cublasLtMatmul, (cublasLtHandle_t h, cublasLtMatmulDesc_t x, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
	const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t s), (void)h; (void)workspace; (void)s;
	if (algo->data[0] != 42 || size < 1024 || (uintptr_t)a % algo->data[1] || (uintptr_t)b % algo->data[2] || (uintptr_t)c % algo->data[3] || (uintptr_t)d % algo->data[4]) r = INVALID_VALUE;
	say("product by way %d", (int)algo->data[5]);
	uint64_t depth = x->trans[0] ? la->rows : la->cols;
	for (int i = 0; !r && i < ld->batch; i++)
		for (uint64_t row = 0; row < ld->rows; row++)
			for (uint64_t col = 0; col < ld->cols; col++) {
				double sum = get(beta, x->scale, 0) * get(c, lc->type, at(lc, i, row, col));
				for (uint64_t k = 0; k < depth; k++)
					sum += get(alpha, x->scale, 0) * get(a, la->type, x->trans[0] ? at(la, i, k, row) : at(la, i, row, k)) * get(b, lb->type, x->trans[1] ? at(lb, i, col, k) : at(lb, i, k, col));
				if (x->epilogue == 160) set(x->aux, ld->type, i * x->aux_stride + col * x->aux_ld + row, sum);
				set(d, ld->type, at(ld, i, row, col), sum + (x->epilogue == 4 ? get(x->bias, ld->type, row) : 0));
			}
	for (uint64_t row = 0; !r && x->epilogue == 256 && row < ld->rows; row++) { // the sum of the rows of op(A)
		double sum = 0;
		for (uint64_t k = 0; k < depth; k++) sum += get(a, la->type, x->trans[0] ? at(la, 0, k, row) : at(la, 0, row, k));
		set(x->bias, ld->type, row, sum);
	})
