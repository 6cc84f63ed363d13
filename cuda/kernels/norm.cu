// Norms over the rows of x, with an optional addition of a residual before, and their gradients.
//
// The gradients recompute a row's mean and deviation, because that costs less than storing them. The
// gradient of a gain is a sum over rows in two fixed steps: over parts of the rows, then over the parts.
#include "base.cuh"

template <class A> struct Moments { A mean, r; };

// moments returns a row's mean (0 if it is not subtracted) and the inverse of its deviation.
template <bool Centred, int N, class T> __device__ Moments<Acc<T>> moments(const T* x, int cols, double eps) {
	typedef Acc<T> A;
	A mean = 0, square = 0, v[N];
	if (Centred) {
		FOR_COLS(j, cols, N) {
			read<N>(v, x + j);
			for (int k = 0; k < N; k++) mean += v[k];
		}
		mean = overRow(mean, Plus()) / cols;
	}
	FOR_COLS(j, cols, N) {
		read<N>(v, x + j);
		for (int k = 0; k < N; k++) square += (v[k] - mean) * (v[k] - mean);
	}
	square = overRow(square, Plus()) / cols;
	return {mean, 1 / rootOf(square + (A)eps)};
}

template <bool Centred, int N, class T>
__device__ void normRows(T* y, T* sum, const T* x, const T* residual, const T* gain, const T* bias, int rows, int cols, double eps, int unit) {
	typedef Acc<T> A;
	A v[N], w[N], g[N];
	FOR_ROWS(i, rows) {
		const T* xi = x + i * cols;
		if (sum != nullptr) {
			FOR_COLS(j, cols, N) {
				read<N>(v, xi + j);
				read<N>(w, residual + i * cols + j);
				for (int k = 0; k < N; k++) v[k] += w[k];
				write<N>(sum + i * cols + j, v);
			}
			xi = sum + i * cols; // each thread reads what it wrote itself
		}
		const Moments<A> m = moments<Centred, N>(xi, cols, eps);
		FOR_COLS(j, cols, N) {
			read<N>(v, xi + j);
			read<N>(g, gain + j);
			read<N>(w, bias == nullptr ? bias : bias + j);
			for (int k = 0; k < N; k++) v[k] = (v[k] - m.mean) * m.r * (g[k] + unit) + w[k];
			write<N>(y + i * cols + j, v);
		}
	}
}

// for i := range rows { s = x[i] (+ residual[i], and sum[i] = s, if sum); y[i] = (s-mean)*r * (unit+gain)
// (+ bias, if bias) }
// with the mean of s, or 0 if not Centred, and r = 1/sqrt(mean((s-mean)^2) + eps).
template <bool Centred, class T>
__device__ void norm(T* y, T* sum, const T* x, const T* residual, const T* gain, const T* bias, int rows, int cols, double eps, int unit) {
	if (aligned<T>(cols, y, sum, x, residual, gain, bias))
		normRows<Centred, packed<T>>(y, sum, x, residual, gain, bias, rows, cols, eps, unit);
	else
		normRows<Centred, 1>(y, sum, x, residual, gain, bias, rows, cols, eps, unit);
}

template <bool Centred, int N, class T>
__device__ void normDXRows(T* dx, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) {
	typedef Acc<T> A;
	A v[N], g[N], d[N], w[N];
	FOR_ROWS(i, rows) {
		const T *xi = x + i * cols, *dyi = dy + i * cols;
		const Moments<A> m = moments<Centred, N>(xi, cols, eps);
		A sum = 0, along = 0;
		FOR_COLS(j, cols, N) {
			read<N>(v, xi + j);
			read<N>(g, gain + j);
			read<N>(d, dyi + j);
			for (int k = 0; k < N; k++) {
				sum += d[k] * (g[k] + unit);
				along += d[k] * (g[k] + unit) * ((v[k] - m.mean) * m.r);
			}
		}
		sum = Centred ? overRow(sum, Plus()) / cols : 0;
		along = overRow(along, Plus()) / cols;
		FOR_COLS(j, cols, N) {
			read<N>(v, xi + j);
			read<N>(g, gain + j);
			read<N>(d, dyi + j);
			read<N>(w, more == nullptr ? more : more + i * cols + j);
			for (int k = 0; k < N; k++) v[k] = m.r * (d[k] * (g[k] + unit) - sum - (v[k] - m.mean) * m.r * along) + w[k];
			write<N>(dx + i * cols + j, v);
		}
	}
}

// for i := range rows { g = dy[i]*(unit+gain); dx[i] = r * (g - mean(g) - xhat*mean(g*xhat)) (+ more[i], if
// more) }
// with xhat = (x[i]-mean)*r, and without mean(g) if not Centred. dx may be dy, x or more.
template <bool Centred, class T>
__device__ void normDX(T* dx, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) {
	if (aligned<T>(cols, dx, dy, more, x, gain))
		normDXRows<Centred, packed<T>>(dx, dy, more, x, gain, rows, cols, eps, unit);
	else
		normDXRows<Centred, 1>(dx, dy, more, x, gain, rows, cols, eps, unit);
}

// for i := range rows { stats[i] = mean; stats[rows+i] = r } of x[i]
template <bool Centred, class T> __device__ void normStats(Acc<T>* stats, const T* x, int rows, int cols, double eps) {
	FOR_ROWS(i, rows) {
		const Moments<Acc<T>> m = aligned<T>(cols, x) ? moments<Centred, packed<T>>(x + i * cols, cols, eps) : moments<Centred, 1>(x + i * cols, cols, eps);
		if (threadIdx.x == 0) {
			stats[i] = m.mean;
			stats[rows + i] = m.r;
		}
	}
}

template <int N, class T> __device__ void normDGainCols(Acc<T>* part, const T* dy, const T* x, const Acc<T>* stats, int rows, int cols, int acc) {
	typedef Acc<T> A;
	A v[N], d[N], sum[N] = {};
	const int j = (blockIdx.x * 32 + threadIdx.x) * N;
	if (blockIdx.x * 32 * N >= cols) return;
	const int per = (rows + gridDim.y - 1) / gridDim.y, from = blockIdx.y * per, end = min(from + per, rows);
	if (j < cols)
		for (int i = from + threadIdx.y; i < end; i += 8) {
			read<N>(v, x + (i64)i * cols + j);
			read<N>(d, dy + (i64)i * cols + j);
			for (int k = 0; k < N; k++) sum[k] += d[k] * ((v[k] - stats[i]) * stats[rows + i]);
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

// for p, j := range [parts, cols] { part[p,j] = sum of dy[i,j] * (x[i,j]-stats[i])*stats[rows+i] over the
// p-th part of the rows (+ part[p,j] if acc) }
// with the parts of the grid. sum_rows then sums the parts.
template <class T> __device__ void normDGain(Acc<T>* part, const T* dy, const T* x, const Acc<T>* stats, int rows, int cols, int acc) {
	if (aligned<T>(cols, dy, x))
		normDGainCols<packed<T>>(part, dy, x, stats, rows, cols, acc);
	else
		normDGainCols<1>(part, dy, x, stats, rows, cols, acc);
}

// Geometry: rowwise; norm_dgain is columnwise (launch.go).
#define NORM(T, t)                                                                                                                 \
	KERNEL rms_norm_##t(T* y, T* sum, const T* x, const T* residual, const T* gain, int rows, int cols, double eps, int unit) {        \
		awaitPrevious(); \
		norm<false, T>(y, sum, x, residual, gain, nullptr, rows, cols, eps, unit);                                                     \
	}                                                                                                                              \
	KERNEL layer_norm_##t(T* y, T* sum, const T* x, const T* residual, const T* gain, const T* bias, int rows, int cols, double eps) { \
		awaitPrevious(); \
		norm<true, T>(y, sum, x, residual, gain, bias, rows, cols, eps, 0);                                                            \
	}                                                                                                                              \
	KERNEL rms_norm_dx_##t(T* dx, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) {   \
		awaitPrevious(); \
		normDX<false, T>(dx, dy, more, x, gain, rows, cols, eps, unit);                                                                \
	}                                                                                                                              \
	KERNEL layer_norm_dx_##t(T* dx, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps) {           \
		awaitPrevious(); \
		normDX<true, T>(dx, dy, more, x, gain, rows, cols, eps, 0);                                                                    \
	}                                                                                                                              \
	KERNEL rms_norm_stats_##t(Acc<T>* stats, const T* x, int rows, int cols, double eps) {                                             \
		awaitPrevious(); \
		normStats<false, T>(stats, x, rows, cols, eps);                                                                                \
	}                                                                                                                              \
	KERNEL layer_norm_stats_##t(Acc<T>* stats, const T* x, int rows, int cols, double eps) {                                           \
		awaitPrevious(); \
		normStats<true, T>(stats, x, rows, cols, eps);                                                                                 \
	}                                                                                                                              \
	KERNEL norm_dgain_##t(Acc<T>* part, const T* dy, const T* x, const Acc<T>* stats, int rows, int cols, int acc) {                   \
		awaitPrevious(); \
		normDGain<T>(part, dy, x, stats, rows, cols, acc);                                                                             \
	}
EACH_TYPE(NORM)
