// The loss over rows of logits. A rank has columns lo to lo+n-1 of the vocabulary. Kernels compute the log
// of the sum of exponentials and the label's logit in one pass, and the gradient of both in place of the
// logits; cross_entropy does all of it at once if the rank has the whole vocabulary. Columns from valid on are
// padding. Statistics have type A.
#include "power.cuh"

// rescale is the factor of a sum whose base grows more negative. It is 1 for an empty sum, whose base is 0.
template <class A> __device__ inline A rescale(A from, A to) { return exp2Of(minOf(to - from, (A)0)); }

// Spread is sum = sum_j power(x[j], base), with base that of the maximum most. They are 0, 0 and -Inf if no
// x[j] is above -Inf.
template <class A> struct Spread { A most, base, sum; };

// add adds numbers to a thread's spread.
template <int N, class A> __device__ inline void add(Spread<A>& s, const A (&v)[N]) {
	A most = s.most;
	for (int k = 0; k < N; k++) most = maxOf(most, v[k]);
	const A b = base(most);
	A sum = s.sum * rescale(s.base, b);
	for (int k = 0; k < N; k++) sum += power(v[k], b);
	s = {most, b, sum};
}

// spread returns the spread of x[:valid] in one pass over the row. A NaN is in the sum.
template <int N, class T> __device__ Spread<Acc<T>> spread(const T* x, int valid) {
	typedef Acc<T> A;
	const A none = -(A)__uint_as_float(0x7f800000u);
	Spread<A> s = {none, 0, 0};
	const int whole = valid / N * N;
	A v[N], one[1];
	FOR_COLS(j, whole, N) {
		read<N>(v, x + j);
		add(s, v);
	}
	for (int j = whole + threadIdx.x; j < valid; j += blockDim.x) {
		read<1>(one, x + j);
		add(s, one);
	}
	const A most = overRow(s.most, Larger()), b = base(most);
	return {most, b, overRow(s.sum * rescale(s.base, b), Plus())};
}

// logSpread returns log sum_j exp(x[j]-most), or 0 if the sum is 0.
template <class A> __device__ A logSpread(const Spread<A>& s) { return s.sum == 0 ? (A)0 : logOf(s.sum * drift(s.most, s.base)); }

// for i := range rows { l[i] = max + log sum_{j < valid} exp(x[i,j]-max); y[i] = x[i, ids[i]-lo] if lo <=
// ids[i] < lo+n, else 0 }
// with max the maximum of x[i,:valid]. l[i] is -Inf if valid is 0. Either of l and y may be null.
template <class T> __device__ void logsumexpPick(Acc<T>* l, Acc<T>* y, const T* x, const int* ids, int rows, int cols, int valid, int lo, int n) {
	FOR_ROWS(i, rows) {
		const T* xi = x + i * cols;
		if (l != nullptr) {
			const Spread<Acc<T>> s = aligned<T>(cols, x) ? spread<packed<T>>(xi, valid) : spread<1>(xi, valid);
			if (threadIdx.x == 0) l[i] = s.most + logSpread(s);
		}
		if (y != nullptr && threadIdx.x == 0) {
			const int j = here(ids[i], lo, n);
			y[i] = j < 0 ? (Acc<T>)0 : wide(xi[j]);
		}
	}
}

// owner returns the thread of gradRow that writes column at.
template <int N> __device__ inline int owner(int at, int valid) {
	const int whole = valid / N * N;
	return (at < whole ? at : at - whole) / N % blockDim.x;
}

// gradRow writes dx[j] = scale*power(x[j], b) for j < valid, else 0, and adds dy to dx[at]. The thread that
// processes the label's column writes that element again.
template <int N, class T> __device__ void gradRow(T* dx, const T* x, Acc<T> scale, Acc<T> b, Acc<T> dy, int at, int cols, int valid) {
	typedef Acc<T> A;
	const int whole = valid / N * N;
	const bool mine = at >= 0 && threadIdx.x == owner<N>(at, valid);
	const A label = (mine && at < valid ? scale * power(wide(x[at]), b) : (A)0) + dy;
	A v[N];
	FOR_COLS(j, whole, N) {
		read<N>(v, x + j);
		for (int k = 0; k < N; k++) v[k] = scale * power(v[k], b);
		write<N>(dx + j, v);
	}
	FOR_COLS(i, cols - whole, N) {
		const i64 j = whole + i;
		for (int k = 0; k < N; k++) v[k] = j + k < valid ? scale * power(wide(x[j + k]), b) : (A)0;
		write<N>(dx + j, v);
	}
	if (mine) dx[at] = narrow<T>(label);
}

// for i, j := range [rows, cols] { dx[i,j] = dl[i]*exp(x[i,j]-l[i]) if j < valid, else 0; dx[i,ids[i]-lo]
// += dy[i] if lo <= ids[i] < lo+n }
// The first term is 0 if l[i] is -Inf. Without x there is no first term, without dy no second. dx may be x.
template <class T>
__device__ void logsumexpPickGrad(T* dx, const Acc<T>* dl, const Acc<T>* dy, const T* x, const Acc<T>* l, const int* ids, int rows, int cols, int valid, int lo, int n) {
	typedef Acc<T> A;
	FOR_ROWS(i, rows) {
		const A li = x == nullptr ? -(A)__uint_as_float(0x7f800000u) : l[i], b = base(li), d = dy == nullptr ? 0 : dy[i];
		const A a = x == nullptr ? 0 : dl[i] * drift(li, b);
		const int at = dy == nullptr ? -1 : here(ids[i], lo, n), some = li == -(A)__uint_as_float(0x7f800000u) ? 0 : valid;
		const T* xi = x == nullptr ? x : x + i * cols;
		if (aligned<T>(cols, x, dx))
			gradRow<packed<T>>(dx + i * cols, xi, a, b, d, at, cols, some);
		else
			gradRow<1>(dx + i * cols, xi, a, b, d, at, cols, some);
	}
}

// lossRow computes a row of crossEntropy. The thread with the label's column reads it and later overwrites
// it.
template <int N, class T> __device__ void lossRow(Acc<T>* ce, T* dx, Acc<T> dl, const T* x, int at, int cols, int valid) {
	const Spread<Acc<T>> s = spread<N>(x, valid);
	if (threadIdx.x == (at < 0 ? 0 : owner<N>(at, valid))) *ce = logSpread(s) + (s.most - (at < 0 ? (Acc<T>)0 : wide(x[at])));
	gradRow<N>(dx, x, s.sum == 0 ? (Acc<T>)0 : dl / s.sum, s.base, -dl, at, cols, valid);
}

// for i, j := range [rows, cols] { ce[i] = l - x[i,ids[i]]; dx[i,j] = dl[i]*exp(x[i,j]-l), less dl[i] where
// j = ids[i] }
// with l the log sum_{j < valid} exp(x[i,j]). For an id that is not a valid column, ce[i] is l. dx[i,j] is 0
// for j >= valid. dx may be x.
template <class T> __device__ void crossEntropy(Acc<T>* ce, T* dx, const Acc<T>* dl, const T* x, const int* ids, int rows, int cols, int valid) {
	FOR_ROWS(i, rows) {
		const int at = here(ids[i], 0, valid);
		if (aligned<T>(cols, x, dx))
			lossRow<packed<T>>(ce + i, dx + i * cols, dl[i], x + i * cols, at, cols, valid);
		else
			lossRow<1>(ce + i, dx + i * cols, dl[i], x + i * cols, at, cols, valid);
	}
}

// Geometry: rowwise, and longRows for cross_entropy (launch.go).
#define LOSS(T, t)                                                                                                                       \
	KERNEL logsumexp_##t(Acc<T>* l, const T* x, int rows, int cols, int valid) {                                                         \
		awaitPrevious(); \
		logsumexpPick<T>(l, nullptr, x, nullptr, rows, cols, valid, 0, 0);                                                               \
	}                                                                                                                                    \
	KERNEL pick_##t(Acc<T>* y, const T* x, const int* ids, int rows, int cols, int lo, int n) {                                          \
		awaitPrevious(); \
		logsumexpPick<T>(nullptr, y, x, ids, rows, cols, 0, lo, n);                                                                      \
	}                                                                                                                                    \
	KERNEL logsumexp_pick_##t(Acc<T>* l, Acc<T>* y, const T* x, const int* ids, int rows, int cols, int valid, int lo, int n) {          \
		awaitPrevious(); \
		logsumexpPick<T>(l, y, x, ids, rows, cols, valid, lo, n);                                                                        \
	}                                                                                                                                    \
	KERNEL logsumexp_grad_##t(T* dx, const Acc<T>* dl, const T* x, const Acc<T>* l, int rows, int cols, int valid) {                     \
		awaitPrevious(); \
		logsumexpPickGrad<T>(dx, dl, nullptr, x, l, nullptr, rows, cols, valid, 0, 0);                                                   \
	}                                                                                                                                    \
	KERNEL pick_grad_##t(T* dx, const Acc<T>* dy, const int* ids, int rows, int cols, int lo, int n) {                                   \
		awaitPrevious(); \
		logsumexpPickGrad<T>(dx, nullptr, dy, nullptr, nullptr, ids, rows, cols, 0, lo, n);                                              \
	}                                                                                                                                    \
	KERNEL logsumexp_pick_grad_##t(T* dx, const Acc<T>* dl, const Acc<T>* dy, const T* x, const Acc<T>* l, const int* ids, int rows, int cols, int valid, int lo, int n) { \
		awaitPrevious(); \
		logsumexpPickGrad<T>(dx, dl, dy, x, l, ids, rows, cols, valid, lo, n);                                                           \
	}                                                                                                                                    \
	KERNEL_1024 cross_entropy_##t(Acc<T>* ce, T* dx, const Acc<T>* dl, const T* x, const int* ids, int rows, int cols, int valid) {                      \
		awaitPrevious(); \
		crossEntropy<T>(ce, dx, dl, x, ids, rows, cols, valid);                                                                                 \
	}
EACH_TYPE(LOSS)
