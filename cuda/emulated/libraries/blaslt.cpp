// cuBLASLt: column-major GEMMs on the host. Sums are accumulated in f32, in eight partial sums, or in f64.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gpu.h"

#define PROTOTYPE(needed, result, name, params, args) extern "C" result name params;
PLANC_LT(PROTOTYPE)

enum { NOT_INITIALIZED = 1, INVALID = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };

struct planc_lt_desc { int compute, scale, trans[2], epilogue; char *bias, *aux; int64_t auxLd, auxStride; int biasType; float *scales[2]; };
struct planc_lt_layout { int type, batch; uint64_t rows, cols; int64_t ld, stride; };
struct planc_lt_preference { size_t workspace; uint32_t align[4]; };
struct cublasLtContext : Object {};

static const size_t needed = 64 << 10; // bytes of workspace that an algorithm needs

#define LT(name, params, ...)              \
	extern "C" cublasStatus_t name params { \
		Held held;                         \
		int r = 0;                         \
		__VA_ARGS__                        \
		eager();                           \
		return r;                          \
	}

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(cublasStatus_t s) { return s == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : s == INVALID ? "CUBLAS_STATUS_INVALID_VALUE" : s == EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_NOT_INITIALIZED"; }
const char *cublasLtGetStatusString(cublasStatus_t s) { return s == NOT_SUPPORTED ? "the functionality requested is not supported" : s == INVALID ? "an unsupported value or parameter was passed to the function" : s == EXECUTION_FAILED ? "the GPU program failed to execute" : "the library was not initialized"; }

LT(cublasLtCreate, (cublasLtHandle_t *h), { if (!current) return NOT_INITIALIZED; *h = make<cublasLtContext>(PRODUCT); })
LT(cublasLtDestroy, (cublasLtHandle_t h), { if (!is<cublasLtContext>(h, PRODUCT)) return NOT_INITIALIZED; h->live = false; })
LT(cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *d, cublasComputeType_t c, cudaDataType_t s), { *d = new planc_lt_desc{c, s, {0, 0}, 1, NULL, NULL, 0, 0, -1, {NULL, NULL}}; })
LT(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t d), { delete d; })
LT(cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t *l, cudaDataType t, uint64_t rows, uint64_t cols, int64_t ld), { *l = new planc_lt_layout{t, 1, rows, cols, ld, 0}; })
LT(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t l), { delete l; })
LT(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t *p), { *p = new planc_lt_preference{0, {256, 256, 256, 256}}; })
LT(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t p), { delete p; })

// take copies an attribute if it has the right size.
template <class T> static int take(T *to, const void *value, size_t size) {
	if (size != sizeof *to) return INVALID;
	memcpy(to, value, size);
	return 0;
}
LT(cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *v, size_t n), {
	switch (what) {
	case planc_lt_trans_a: r = take(&d->trans[0], v, n); break;
	case planc_lt_trans_b: r = take(&d->trans[1], v, n); break;
	case planc_lt_epilogue: r = take(&d->epilogue, v, n); break;
	case planc_lt_bias: r = take(&d->bias, v, n); break;
	case planc_lt_bias_type: r = take(&d->biasType, v, n); break;
	case planc_lt_scale_a: r = take(&d->scales[0], v, n); break;
	case planc_lt_scale_b: r = take(&d->scales[1], v, n); break;
	case planc_lt_aux: r = take(&d->aux, v, n); break;
	case planc_lt_aux_ld: r = take(&d->auxLd, v, n); break;
	case planc_lt_aux_stride: r = take(&d->auxStride, v, n); break;
	default: r = INVALID;
	}
})
LT(cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what, const void *v, size_t n), {
	r = what == planc_lt_batch ? take(&l->batch, v, n) : what == planc_lt_stride ? take(&l->stride, v, n) : (int)INVALID;
})
LT(cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, const void *v, size_t n), {
	r = what == planc_lt_workspace ? take(&p->workspace, v, n) : what >= planc_lt_align_a && what <= planc_lt_align_d ? take(&p->align[what - planc_lt_align_a], v, n) : (int)INVALID;
})

enum { E4M3 = 28, E5M2 = 29 };
static size_t width(int type) { return type == 0 ? 4 : type == 1 ? 8 : type == 2 || type == 14 ? 2 : type == E4M3 || type == E5M2 ? 1 : 0; }

// fits reports whether op(A) op(B) has the shape of D.
static bool fits(cublasLtMatmulDesc_t x, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
	uint64_t m = x->trans[0] ? a->cols : a->rows, k = x->trans[0] ? a->rows : a->cols, k2 = x->trans[1] ? b->cols : b->rows, n = x->trans[1] ? b->rows : b->cols;
	return m == d->rows && n == d->cols && k == k2 && a->batch == d->batch && b->batch == d->batch && a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows && d->ld >= (int64_t)d->rows;
}

// refuses reports whether the library refuses an epilogue, because PLANC_EMULATED_EPILOGUES=8 says that leading
// dimensions must be multiples of 8.
static bool refuses(cublasLtMatmulDesc_t x, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
	const char *n = getenv("PLANC_EMULATED_EPILOGUES");
	int64_t by = n && *n ? atol(n) : 1;
	if (x->epilogue == 1 || (a->ld % by == 0 && b->ld % by == 0 && d->ld % by == 0)) return false;
	say("cuBLASLt refuses epilogue %d", x->epilogue);
	return true;
}

// known reports whether the library has a GEMM of these types: operands of one type, and a result of the
// same type or, for 16-bit operands, of f32.
static bool known(cublasLtMatmulDesc_t x, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
	static const std::set<int> epilogues = {1, 4, 32, 36, 160, 164, 192, 208, 256};
	bool wide = a->type == 1;
	if (!epilogues.count(x->epilogue) || (x->aux && x->auxLd % 8)) return false;
	if (width(a->type) == 1) // as on Hopper: K must be contiguous, and E5M2 times E5M2 does not exist
		return width(b->type) == 1 && (a->type == E4M3 || b->type == E4M3) && x->trans[0] && !x->trans[1] && x->scale == 0 && x->compute == planc_lt_compute_32f && (d->type == 14 || d->type == 2 || d->type == 0) &&
			x->epilogue == 1 && x->scales[0] && x->scales[1] && a->rows % 16 == 0 && a->ld % 16 == 0 && b->ld % 16 == 0 && d->ld * width(d->type) % 16 == 0;
	if (a->type != b->type || !width(a->type)) return false;
	if (wide) return d->type == 1 && x->compute == planc_lt_compute_64f && x->scale == 1 && x->epilogue == 1;
	if (x->scale != 0 || (x->compute != planc_lt_compute_32f && x->compute != planc_lt_compute_tf32) || (x->compute == planc_lt_compute_tf32 && a->type)) return false;
	return d->type == a->type || d->type == 0;
}
LT(cublasLtMatmulAlgoGetHeuristic, (cublasLtHandle_t h, cublasLtMatmulDesc_t x, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
	cublasLtMatmulPreference_t p, int asked, cublasLtMatmulHeuristicResult_t *results, int *got), {
	if (!is<cublasLtContext>(h, PRODUCT)) return NOT_INITIALIZED;
	if (!fits(x, a, b, d) || c->type != d->type) return INVALID;
	if (!known(x, a, b, d) || refuses(x, a, b, d)) return NOT_SUPPORTED;
	*got = std::min(asked, 3);
	for (int k = 0; k < *got; k++) {
		auto &found = results[k];
		memset((void *)&found, 0, sizeof found);
		found.algo.data[0] = 42;
		// as if it needed every alignment that is promised
		for (int i = 0; i < 4; i++) found.algo.data[1 + i] = p->align[i];
		found.algo.data[5] = k;
		found.workspaceSize = std::min(p->workspace, needed);
	}
})

static double get(const char *p, int type, uint64_t i) {
	if (type == 1) return ((const double *)p)[i];
	if (type == 0) return ((const float *)p)[i];
	if (type == 2) return (double)((const _Float16 *)p)[i];
	if (width(type) == 1) {
		int code = (unsigned char)p[i], mantissa = type == E4M3 ? 3 : 2, bias = type == E4M3 ? 7 : 15, e = (code & 127) >> mantissa, m = code & ((1 << mantissa) - 1);
		double v = e == 0 ? ldexp(m, 1 - bias - mantissa) : ldexp((1 << mantissa) + m, e - bias - mantissa);
		if (type == E4M3 ? (code & 127) == 127 : e == 31) v = type == E5M2 && m == 0 ? INFINITY : NAN;
		return code & 128 ? -v : v;
	}
	uint32_t w = (uint32_t)((const uint16_t *)p)[i] << 16;
	float x;
	memcpy(&x, &w, 4);
	return x;
}
static void set(char *p, int type, uint64_t i, double v) {
	if (type == 1) ((double *)p)[i] = v;
	if (type == 0) ((float *)p)[i] = (float)v;
	if (type == 2) ((_Float16 *)p)[i] = (_Float16)(float)v;
	if (type != 14) return;
	float x = (float)v;
	uint32_t b;
	memcpy(&b, &x, 4);
	((uint16_t *)p)[i] = x != x ? b >> 16 | 0x40 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}

// Matmul is an enqueued GEMM with all arguments of the call.
struct Matmul {
	planc_lt_desc x;
	planc_lt_layout a, b, c, d;
	const char *pa, *pb, *pc;
	char *pd, *workspace;
	double alpha, beta;
	size_t size, scratch; // bytes of workspace, and how many of them are used
	bool tf32;
	uint64_t way; // number of the algorithm, which decides the order of sums
};

// pack stores the rows of op(A), or the columns of op(B), one after the other.
template <class T> static std::vector<T> pack(const char *p, const planc_lt_layout &l, int batch, bool byRow, bool tf32) {
	uint64_t n = byRow ? l.rows : l.cols, k = byRow ? l.cols : l.rows;
	std::vector<T> v(n * k);
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t j = 0; j < k; j++) {
			double x = get(p, l.type, batch * l.stride + (byRow ? j * l.ld + i : i * l.ld + j));
			if (tf32) {
				float f = (float)x;
				uint32_t b;
				memcpy(&b, &f, 4);
				b = (b + 0xfff + (b >> 13 & 1)) & ~0x1fffu;
				memcpy(&f, &b, 4);
				x = f;
			}
			v[i * k + j] = (T)x;
		}
	return v;
}

// dot adds in an order that depends on the number of the algorithm: the partial sums of the first are added in pairs,
// those of others one after the other.
template <class T> static T dot(const T *a, const T *b, uint64_t k, uint64_t way) {
	T part[8] = {};
	uint64_t i = 0;
	for (; i + 8 <= k; i += 8)
		for (int j = 0; j < 8; j++) part[j] += a[i + j] * b[i + j];
	for (; i < k; i++) part[i % 8] += a[i] * b[i];
	T sum = 0;
	for (int j = 0; way && j < 8; j++) sum += part[(way + j) % 8];
	if (way) return sum;
	return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

static const double root = 0.7978845608028654; // sqrt(2/pi)
static double gelu(double x) { return 0.5 * x * (1 + tanh(root * (x + 0.044715 * x * x * x))); }
static double geluGrad(double x) {
	double t = tanh(root * (x + 0.044715 * x * x * x));
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

enum { BIAS = 4, GELU = 32, AUX = 128, DGELU = 64, BGRAD_D = 16, BGRAD_A = 256 }; // bits of an epilogue

// whole computes the GEMM and the epilogue that the bits of its number select.
template <class T> static void whole(const Matmul &m) {
	int e = m.x.epilogue == 1 ? 0 : m.x.epilogue;
	uint64_t rows = m.d.rows, cols = m.d.cols, depth = m.x.trans[0] ? m.a.rows : m.a.cols;
	std::vector<T> sums(rows);
	double alpha = m.alpha;
	if (width(m.a.type) == 1) alpha *= (double)*m.x.scales[0] * *m.x.scales[1];
	for (int batch = 0; batch < m.d.batch; batch++) {
		std::vector<T> a = pack<T>(m.pa, m.a, batch, !m.x.trans[0], m.tf32), b = pack<T>(m.pb, m.b, batch, m.x.trans[1], m.tf32);
		if (e & BGRAD_A)
			for (uint64_t i = 0; i < rows; i++)
				for (uint64_t k = 0; k < depth; k++) sums[i] += a[i * depth + k];
		for (uint64_t j = 0; j < cols; j++)
			for (uint64_t i = 0; i < rows; i++) {
				uint64_t at = batch * m.d.stride + j * m.d.ld + i, aux = batch * m.x.auxStride + j * m.x.auxLd + i;
				T v = (T)alpha * dot(&a[i * depth], &b[j * depth], depth, m.way);
				if (m.beta != 0) v += (T)m.beta * (T)get(m.pc, m.c.type, batch * m.c.stride + j * m.c.ld + i);
				if (e & BIAS) v += (T)get(m.x.bias, m.x.biasType < 0 ? m.d.type : m.x.biasType, i);
				if (e & GELU) {
					if (e & AUX) set(m.x.aux, m.d.type, aux, v);
					v = (T)gelu(v);
				}
				if (e & DGELU) v *= (T)geluGrad(get(m.x.aux, m.d.type, aux));
				if (e & BGRAD_D) sums[i] += v;
				set(m.pd, m.d.type, at, v);
			}
	}
	if (e & (BGRAD_A | BGRAD_D))
		for (uint64_t i = 0; i < rows; i++) set(m.x.bias, m.x.biasType < 0 ? m.d.type : m.x.biasType, i, sums[i]);
}

// extent is the number of bytes that a matrix and its batch span.
static size_t extent(const planc_lt_layout &l) { return ((l.batch - 1) * l.stride + (l.cols - 1) * l.ld + l.rows) * width(l.type); }

static std::string execute(Context *c, const Matmul &m) {
	struct { const char *p; size_t n; const char *what; } all[] = {{m.pa, extent(m.a), "A"}, {m.pb, extent(m.b), "B"}, {m.pd, extent(m.d), "D"}, {m.workspace, m.size, "the workspace"},
		{(const char *)m.x.scales[0], m.x.scales[0] ? sizeof(float) : 0, "A's scale"}, {(const char *)m.x.scales[1], m.x.scales[1] ? sizeof(float) : 0, "B's scale"},
		{m.x.bias, m.x.bias ? m.d.rows * width(m.d.type) : 0, "the bias"}, {m.x.aux, m.x.aux ? ((m.d.batch - 1) * m.x.auxStride + (m.d.cols - 1) * m.x.auxLd + m.d.rows) * width(m.d.type) : 0, "the input of GELU"}};
	for (auto &x : all) {
		std::string why = x.n ? touches(c, (uint64_t)x.p, x.n, x.what) : "";
		if (!why.empty()) return why;
	}
	memset(m.workspace, 0xff, m.scratch); // so that anyone else who keeps something in the workspace notices
	if (m.a.type == 1) whole<double>(m);
	else whole<float>(m);
	return "";
}

LT(cublasLtMatmul, (cublasLtHandle_t h, cublasLtMatmulDesc_t x, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
	const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t t), {
	Stream *s = is<Stream>(t, STREAM);
	if (!is<cublasLtContext>(h, PRODUCT) || !s || s->context != h->context) return NOT_INITIALIZED;
	if (algo->data[0] != 42 || (uintptr_t)a % algo->data[1] || (uintptr_t)b % algo->data[2] || (uintptr_t)c % algo->data[3] || (uintptr_t)d % algo->data[4]) return INVALID;
	if (!fits(x, la, lb, ld) || !known(x, la, lb, ld)) return INVALID;
	Matmul m = {*x, *la, *lb, *lc, *ld, (const char *)a, (const char *)b, (const char *)c, (char *)d, (char *)workspace,
		get((const char *)alpha, x->scale, 0), get((const char *)beta, x->scale, 0), size, std::min(size, needed),
        x->compute == planc_lt_compute_tf32, algo->data[5]};
	timedGEMM = algo->data[5] + (x->epilogue == BGRAD_A ? 3 : 0);
	Context *on = s->context;
	std::string text = "stream " + std::to_string(s->id) + ": GEMM " + std::to_string(ld->cols) + "x" + std::to_string(ld->rows) + "x" + std::to_string(x->trans[0] ? la->rows : la->cols) + ", epilogue " + std::to_string(x->epilogue);
	std::string types = " of types " + std::to_string(la->type) + " " + std::to_string(lb->type) + " " + std::to_string(ld->type) + ", transposed " + std::to_string(x->trans[0]) + std::to_string(x->trans[1]);
	if (loadsLate(on, text.substr(text.find("GEMM")) + types + ", batch " + std::to_string(ld->batch))) return EXECUTION_FAILED;
	r = put(s, text, [=] { return execute(on, m); });
})
