// The loss over rows of logits. A rank has columns lo to lo+n-1 of the vocabulary. Kernels compute the log
// of the sum of exponentials and the label's logit in one pass, and the gradient of both in place of the
// logits; cross_entropy does all of it at once if the rank has the whole vocabulary. Statistics have type
// A.
#include "base.cuh"

// spread returns sum_{j < valid} exp(x[j]-most) over a row, and sets most to the maximum. They are 0 and
// -Inf if valid is 0 or no element is above -Inf.
template <int N, class T> __device__ Acc<T> spread(const T* x, int valid, Acc<T>& most) {
	typedef Acc<T> A;
	const A none = -(A)__uint_as_float(0x7f800000u);
	A top = none, sum = 0, v[N];
	FOR_COLS(j, valid, N) {
		read<N>(v, x + j);
		A most = top;
		for (int k = 0; k < N; k++) {
			if (j + k >= valid) v[k] = none;
			most = Larger()(most, v[k]);
		}
		if (most == none) continue; // -Inf - -Inf is NaN
		sum *= expOf(top - most);
		for (int k = 0; k < N; k++) sum += expOf(v[k] - most);
		top = most;
	}
	most = overRow(top, Larger());
	if (most == none) return 0;
	return overRow(top == none ? (A)0 : sum * expOf(top - most), Plus());
}

// logSpread returns log sum_{j < valid} exp(x[j]), or -Inf if the sum is 0.
template <int N, class T> __device__ Acc<T> logSpread(const T* x, int valid) {
	Acc<T> most;
	const Acc<T> sum = spread<N>(x, valid, most);
	return sum == 0 ? most : most + logOf(sum);
}

// for i := range rows { l[i] = max + log sum_{j < valid} exp(x[i,j]-max); y[i] = x[i, ids[i]-lo] if lo <=
// ids[i] < lo+n, else 0 }
// with max the maximum of x[i,:valid]. l[i] is -Inf if valid is 0. Either of l and y may be null.
template <class T> __device__ void logsumexpPick(Acc<T>* l, Acc<T>* y, const T* x, const int* ids, int rows, int cols, int valid, int lo, int n) {
	FOR_ROWS(i, rows) {
		const T* xi = x + i * cols;
		if (l != nullptr) {
			const Acc<T> s = aligned<T>(cols, x) ? logSpread<packed<T>>(xi, valid) : logSpread<1>(xi, valid);
			if (threadIdx.x == 0) l[i] = s;
		}
		if (y != nullptr && threadIdx.x == 0) {
			const int j = here(ids[i], lo, n);
			y[i] = j < 0 ? (Acc<T>)0 : wide(xi[j]);
		}
	}
}

template <int N, class T> __device__ void gradRow(T* dx, const T* x, Acc<T> dl, Acc<T> l, Acc<T> dy, int at, int cols, int valid) {
	typedef Acc<T> A;
	const bool none = l == -(A)__uint_as_float(0x7f800000u);
	A v[N];
	FOR_COLS(j, cols, N) {
		if (x == nullptr) {
			for (int k = 0; k < N; k++) v[k] = 0;
		} else {
			read<N>(v, x + j);
			for (int k = 0; k < N; k++) v[k] = none || j + k >= valid ? 0 : dl * expOf(v[k] - l);
		}
		for (int k = 0; k < N; k++)
			if (j + k == at) v[k] += dy;
		write<N>(dx + j, v);
	}
}

// for i, j := range [rows, cols] { dx[i,j] = dl[i]*exp(x[i,j]-l[i]) if j < valid, else 0; dx[i,ids[i]-lo]
// += dy[i] if lo <= ids[i] < lo+n }
// The first term is 0 if l[i] is -Inf. Without x there is no first term, without dy no second. dx may be x.
template <class T>
__device__ void logsumexpPickGrad(T* dx, const Acc<T>* dl, const Acc<T>* dy, const T* x, const Acc<T>* l, const int* ids, int rows, int cols, int valid, int lo, int n) {
	typedef Acc<T> A;
	FOR_ROWS(i, rows) {
		const A a = x == nullptr ? 0 : dl[i], b = x == nullptr ? 0 : l[i], d = dy == nullptr ? 0 : dy[i];
		const int at = dy == nullptr ? -1 : here(ids[i], lo, n);
		const T* xi = x == nullptr ? x : x + i * cols;
		if (aligned<T>(cols, x, dx))
			gradRow<packed<T>>(dx + i * cols, xi, a, b, d, at, cols, valid);
		else
			gradRow<1>(dx + i * cols, xi, a, b, d, at, cols, valid);
	}
}

// lossRow computes a row of crossEntropy. The thread with the label's column reads it and later overwrites
// it.
template <int N, class T> __device__ void lossRow(Acc<T>* ce, T* dx, Acc<T> dl, const T* x, int at, int cols) {
	Acc<T> most;
	const Acc<T> sum = spread<N>(x, cols, most);
	if (threadIdx.x == (at < 0 ? 0 : at / N % blockDim.x)) *ce = (sum == 0 ? 0 : logOf(sum)) + (most - (at < 0 ? (Acc<T>)0 : wide(x[at])));
	gradRow<N>(dx, x, dl / sum, most, -dl, at, cols, cols);
}

// for i, j := range [rows, cols] { ce[i] = l - x[i,ids[i]]; dx[i,j] = dl[i]*exp(x[i,j]-l), less dl[i] where
// j = ids[i] }
// with l the log sum_j exp(x[i,j]). For an id that is not a column, ce[i] is l. dx may be x.
template <class T> __device__ void crossEntropy(Acc<T>* ce, T* dx, const Acc<T>* dl, const T* x, const int* ids, int rows, int cols) {
	FOR_ROWS(i, rows) {
		const int at = here(ids[i], 0, cols);
		if (aligned<T>(cols, x, dx))
			lossRow<packed<T>>(ce + i, dx + i * cols, dl[i], x + i * cols, at, cols);
		else
			lossRow<1>(ce + i, dx + i * cols, dl[i], x + i * cols, at, cols);
	}
}

// Geometry: rowwise (launch.go).
#define LOSS(T, t)                                                                                                                       \
	KERNEL logsumexp_##t(Acc<T>* l, const T* x, int rows, int cols, int valid) {                                                         \
		logsumexpPick<T>(l, nullptr, x, nullptr, rows, cols, valid, 0, 0);                                                               \
	}                                                                                                                                    \
	KERNEL pick_##t(Acc<T>* y, const T* x, const int* ids, int rows, int cols, int lo, int n) {                                          \
		logsumexpPick<T>(nullptr, y, x, ids, rows, cols, 0, lo, n);                                                                      \
	}                                                                                                                                    \
	KERNEL logsumexp_pick_##t(Acc<T>* l, Acc<T>* y, const T* x, const int* ids, int rows, int cols, int valid, int lo, int n) {          \
		logsumexpPick<T>(l, y, x, ids, rows, cols, valid, lo, n);                                                                        \
	}                                                                                                                                    \
	KERNEL logsumexp_grad_##t(T* dx, const Acc<T>* dl, const T* x, const Acc<T>* l, int rows, int cols, int valid) {                     \
		logsumexpPickGrad<T>(dx, dl, nullptr, x, l, nullptr, rows, cols, valid, 0, 0);                                                   \
	}                                                                                                                                    \
	KERNEL pick_grad_##t(T* dx, const Acc<T>* dy, const int* ids, int rows, int cols, int lo, int n) {                                   \
		logsumexpPickGrad<T>(dx, nullptr, dy, nullptr, nullptr, ids, rows, cols, 0, lo, n);                                              \
	}                                                                                                                                    \
	KERNEL logsumexp_pick_grad_##t(T* dx, const Acc<T>* dl, const Acc<T>* dy, const T* x, const Acc<T>* l, const int* ids, int rows, int cols, int valid, int lo, int n) { \
		logsumexpPickGrad<T>(dx, dl, dy, x, l, ids, rows, cols, valid, lo, n);                                                           \
	}                                                                                                                                    \
	KERNEL cross_entropy_##t(Acc<T>* ce, T* dx, const Acc<T>* dl, const T* x, const int* ids, int rows, int cols) {                      \
		crossEntropy<T>(ce, dx, dl, x, ids, rows, cols);                                                                                 \
	}
EACH_TYPE(LOSS)
