// The blocks of the tests' model, each computed by one thread. toy_test.go has the same loops in Go.
#include "base.cuh"

#define ONCE if (threadIdx.x > 0 || blockIdx.x > 0) return

template <class T, class P> __device__ void inForward(T* y, const int* tokens, const P* a, int n, int h) {
	ONCE;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < h; j++) y[i * h + j] = (T)tokens[i] / 16 * wide(a[j]);
}

template <class T> __device__ void inBackward(T* da, const T* dy, const int* tokens, int n, int h) {
	ONCE;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < h; j++) da[j] += dy[i * h + j] * ((T)tokens[i] / 16);
}

template <class T, class P> __device__ void blockForward(T* y, const T* x, const P* w, int n, int h) {
	ONCE;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < h; j++) y[i * h + j] = x[i * h + j] * wide(w[j]) + (T)0.125;
}

template <class T, class P> __device__ void blockBackward(T* dx, T* dw, const T* dy, const T* x, const P* w, int n, int h) {
	ONCE;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < h; j++) {
			dw[j] += dy[i * h + j] * x[i * h + j];
			dx[i * h + j] = dy[i * h + j] * wide(w[j]);
		}
}

template <class T, class P> __device__ T miss(const T* x, const P* v, int label, int h) {
	T e = (T)-label / 16;
	for (int j = 0; j < h; j++) e += x[j] * wide(v[j]);
	return e;
}

template <class T, class P> __device__ void headForward(double* loss, const T* x, const P* v, const int* labels, const T* mask, int n, int h) {
	ONCE;
	double sum = 0;
	for (int i = 0; i < n; i++) {
		const double e = miss(x + i * h, v, labels[i], h);
		sum += mask[i] * e * e / 2;
	}
	*loss += sum;
}

template <class T, class P> __device__ void headBackward(T* dx, T* dv, const T* x, const P* v, const int* labels, const T* mask, const double* scale, const double* count, int n, int h) {
	ONCE;
	for (int i = 0; i < n; i++) {
		const T g = mask[i] * miss(x + i * h, v, labels[i], h) * (T)(*scale / *count);
		for (int j = 0; j < h; j++) {
			dv[j] += g * x[i * h + j];
			dx[i * h + j] = g * wide(v[j]);
		}
	}
}

#define TOY(T, P, s)                                                                                                                            \
	KERNEL toy_in_##s(T* y, const int* tokens, const P* a, int n, int h) { inForward(y, tokens, a, n, h); }                                  \
	KERNEL toy_in_grad_##s(T* da, const T* dy, const int* tokens, int n, int h) { inBackward(da, dy, tokens, n, h); }                        \
	KERNEL toy_block_##s(T* y, const T* x, const P* w, int n, int h) { blockForward(y, x, w, n, h); }                                        \
	KERNEL toy_block_grad_##s(T* dx, T* dw, const T* dy, const T* x, const P* w, int n, int h) { blockBackward(dx, dw, dy, x, w, n, h); }    \
	KERNEL toy_head_##s(double* loss, const T* x, const P* v, const int* labels, const T* mask, int n, int h) { headForward(loss, x, v, labels, mask, n, h); } \
	KERNEL toy_head_grad_##s(T* dx, T* dv, const T* x, const P* v, const int* labels, const T* mask, const double* scale, const double* count, int n, int h) { \
		headBackward(dx, dv, x, v, labels, mask, scale, count, n, h);                                                                         \
	}
TOY(double, double, f64)
TOY(float, bf16, bf16)
