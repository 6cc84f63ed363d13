// Sums over rows, over columns and over all of an array, and the decisions that follow from the global
// norm.
//
// Sums over many blocks are written as parts, which a second launch sums; both have a fixed order.
#include "base.cuh"

template <int N, class T> __device__ void sumRowsCols(Acc<T>* part, const T* x, int rows, int cols, int acc) {
	typedef Acc<T> A;
	A v[N], sum[N] = {};
	const int j = (blockIdx.x * 32 + threadIdx.x) * N;
	if (blockIdx.x * 32 * N >= cols) return;
	const int per = (rows + gridDim.y - 1) / gridDim.y, from = blockIdx.y * per, end = min(from + per, rows);
	if (j < cols)
		for (int i = from + threadIdx.y; i < end; i += 8) {
			read<N>(v, x + (i64)i * cols + j);
			for (int k = 0; k < N; k++) sum[k] += v[k];
		}
	SHARED(A, all, 8 * 32 * N);
	for (int k = 0; k < N; k++) all[(threadIdx.y * 32 + threadIdx.x) * N + k] = sum[k];
	__syncthreads();
	if (threadIdx.y > 0 || j >= cols) return;
	for (int y = 1; y < 8; y++)
		for (int k = 0; k < N; k++) sum[k] += all[(y * 32 + threadIdx.x) * N + k];
	for (int k = 0; k < N; k++) {
		A* to = part + (i64)blockIdx.y * cols + j + k;
		*to = acc ? *to + sum[k] : sum[k];
	}
}

// for p, j := range [parts, cols] { part[p,j] = sum of x[i,j] over the p-th part of the rows (+ part[p,j]
// if acc) }
// with the parts of the grid.
template <class T> __device__ void sumRows(Acc<T>* part, const T* x, int rows, int cols, int acc) {
	if (aligned<T>(cols, x))
		sumRowsCols<packed<T>>(part, x, rows, cols, acc);
	else
		sumRowsCols<1>(part, x, rows, cols, acc);
}

// for i, j := range [n, cols] { out[i,j] = sum_k x[i,k,j] (+ out[i,j] if acc) }, k over rows
template <class T> __device__ void sumRowsEach(Acc<T>* out, const T* x, int n, int rows, int cols, int acc) {
	FOR_ROWS(i, n)
		FOR_COLS(j, cols, 1) {
			const T* at = x + i * rows * cols + j;
			Acc<T> sum = 0;
			for (int k = 0; k < rows; k++) sum += wide(at[(i64)k * cols]);
			out[i * cols + j] = acc ? out[i * cols + j] + sum : sum;
		}
}

template <int N, class T> __device__ Acc<T> rowSum(const T* x, int cols) {
	Acc<T> v[N], sum = 0;
	FOR_COLS(j, cols, N) {
		read<N>(v, x + j);
		for (int k = 0; k < N; k++) sum += v[k];
	}
	return overRow(sum, Plus());
}

// for i := range rows { out[i] = sum_j x[i,j] (+ out[i] if acc) }
template <class T> __device__ void sumCols(Acc<T>* out, const T* x, int rows, int cols, int acc) {
	FOR_ROWS(i, rows) {
		const Acc<T> sum = aligned<T>(cols, x) ? rowSum<packed<T>>(x + i * cols, cols) : rowSum<1>(x + i * cols, cols);
		if (threadIdx.x == 0) out[i] = acc ? out[i] + sum : sum;
	}
}

// for each block b { part[b] = sum of x[i]^2 over the block's elements }
template <class T> __device__ void sumSquares(double* part, const T* x, i64 n) {
	double sum = 0;
	flat<packed<T>>(n, aligned<T>(packed<T>, x), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		Acc<T> v[N];
		read<N>(v, x + i);
		for (int k = 0; k < N; k++) sum += (double)v[k] * v[k];
	});
	sum = overRow(sum, Plus());
	if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

// for i := range x { if x[i] is infinite or NaN { flag = 1 } }
template <class T> __device__ void notFinite(int* flag, const T* x, i64 n) {
	flat<packed<T>>(n, aligned<T>(packed<T>, x), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		Acc<T> v[N];
		read<N>(v, x + i);
		for (int k = 0; k < N; k++)
			if (v[k] - v[k] != 0) *flag = 1; // all threads write the same value
	});
}

// out = sum_i part[i]
KERNEL sum_parts_f64(double* out, const double* part, int n) {
	awaitPrevious();
	double sum = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) sum += part[i];
	sum = overRow(sum, Plus());
	if (threadIdx.x == 0) *out = sum;
}

// out[0] = norm = sqrt(pair[0])/scale; out[1] = min(1, limit/(norm+1e-6))/scale, or 1/scale if limit is 0;
// out[2] = 1 if norm is not finite or pair[1] or pair[2] is not 0, else 0
// pair holds the sum of squares of all gradients, the number of ranks whose loss is not finite, and the
// number of ranks that need the step to be retried.
KERNEL clip_f64(double* out, const double* pair, const double* scale, double limit) {
	awaitPrevious();
	if (threadIdx.x > 0) return;
	const double norm = sqrt(pair[0]) / *scale, factor = limit > 0 ? limit / (norm + 1e-6) : 1;
	out[0] = norm;
	out[1] = (factor < 1 ? factor : 1) / *scale;
	out[2] = norm - norm != 0 || pair[1] != 0 || pair[2] != 0;
}

// state is the loss scale, the number of consecutive good steps, and the number of bad steps that are still
// without consequence:
// if bad { good = 0; if free > 0 { free-- } else { scale = max(scale/2, least) } }
// else { good++; if good%window = 0 or consecutive { free = hysteresis-1 }; if good%window = 0 and scale
// stays finite in float { scale *= 2 } }
// where bad is clip[2].
KERNEL scaler_f64(double* state, const double* clip, int window, int hysteresis, double least, int consecutive) {
	awaitPrevious();
	if (threadIdx.x > 0) return;
	if (clip[2] != 0) {
		state[1] = 0;
		if (state[2] > 0) state[2]--;
		else state[0] = state[0] / 2 > least ? state[0] / 2 : least;
		return;
	}
	state[1]++;
	const bool grows = (i64)state[1] % window == 0;
	if (grows || consecutive) state[2] = hysteresis - 1;
	if (grows && 2 * state[0] <= 3.40282346638528859812e38) state[0] *= 2;
}

// Geometry: sum_rows is columnwise, sum_rows_each and sum_cols are rowwise, the others flat or one block
// (launch.go).
#define REDUCE(T, t)                                                                                                          \
	KERNEL sum_rows_##t(Acc<T>* part, const T* x, int rows, int cols, int acc) { awaitPrevious(); sumRows<T>(part, x, rows, cols, acc); } \
	KERNEL sum_rows_each_##t(Acc<T>* out, const T* x, int n, int rows, int cols, int acc) { awaitPrevious(); sumRowsEach<T>(out, x, n, rows, cols, acc); } \
	KERNEL sum_cols_##t(Acc<T>* out, const T* x, int rows, int cols, int acc) { awaitPrevious(); sumCols<T>(out, x, rows, cols, acc); }   \
	KERNEL sum_squares_##t(double* part, const T* x, i64 n) { awaitPrevious(); sumSquares<T>(part, x, n); }                               \
	KERNEL not_finite_##t(int* flag, const T* x, i64 n) { awaitPrevious(); notFinite<T>(flag, x, n); }
EACH_TYPE(REDUCE)
