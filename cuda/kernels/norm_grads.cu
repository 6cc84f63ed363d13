// All gradients of a norm in one pass over its operands: of its input, its gain and its bias.
//
// The threads of a row hold it in registers: P packs of 8 elements per thread. They keep the sums of their
// columns over all rows of the block. A row of parts for each block is written at the end, which sum_rows
// then sums. Rows must consist of whole packs, and addresses must be multiples of 16 bytes; the kernels of
// norm.cu have no such limits.
#include "base.cuh"

// Row is a thread's packs of 8 elements of a row: columns (threadIdx.x + p*blockDim.x)*8 and following.
template <int P, class A> struct Row {
	A at[P][8];

	// each calls f(k, column) for the thread's packs.
	template <class F> static __device__ void each(int cols, F f) {
#pragma unroll
		for (int p = 0; p < P; p++) {
			const int j = (threadIdx.x + p * blockDim.x) * 8;
			if (j < cols) f(p, j);
		}
	}
};

// putParts writes part[blockIdx.x] = the block's sums over its rows.
template <int P, class A> __device__ void putParts(A* part, Row<P, A>& sums, int cols) {
	SHARED(A, all, 8 * 32 * 8);
	for (int p = 0; p < P; p++) {
		const int j = (threadIdx.x + p * blockDim.x) * 8;
		if (blockDim.y > 1) {
			__syncthreads(); // the previous sums have been read
			for (int k = 0; k < 8; k++) all[(threadIdx.y * 32 + threadIdx.x) * 8 + k] = sums.at[p][k];
			__syncthreads();
			for (int y = 1; threadIdx.y == 0 && y < blockDim.y; y++)
				for (int k = 0; k < 8; k++) sums.at[p][k] += all[(y * 32 + threadIdx.x) * 8 + k];
		}
		if (threadIdx.y == 0 && j < cols) write<8>(part + (i64)blockIdx.x * cols + j, sums.at[p]);
	}
}

// for i := range rows { g = dy[i]*(unit+gain); dx[i] = r * (g - mean(g) - xhat*mean(g*xhat)), rounded (+
// more[i], if more); gainPart[b] += dy[i]*xhat; biasPart[b] += dy[i] }
// with xhat = (x[i]-mean)*r, without mean(g) if not Centred, and b the block of row i. dx may be dy, x or
// more.
template <bool Centred, int P, class T>
__device__ void normGrads(T* dx, Acc<T>* gainPart, Acc<T>* biasPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) {
	typedef Acc<T> A;
	typedef Row<P, A> R;
	R dgain = {}, dbias = {};
	FOR_ROWS(i, rows) {
		const i64 row = i * cols;
		R v = {}, d = {};
		A g[8], mean = 0, square = 0, sum = 0, along = 0;
		R::each(cols, [&](int p, int j) {
			read<8>(v.at[p], x + row + j);
			read<8>(d.at[p], dy + row + j);
			for (int k = 0; k < 8; k++) mean += v.at[p][k];
		});
		mean = Centred ? overRow(mean, Plus()) / cols : 0;
		R::each(cols, [&](int p, int) {
			for (int k = 0; k < 8; k++) {
				v.at[p][k] -= mean;
				square += v.at[p][k] * v.at[p][k];
			}
		});
		const A r = 1 / rootOf(overRow(square, Plus()) / cols + (A)eps);
		R::each(cols, [&](int p, int j) {
			read<8>(g, gain + j);
			for (int k = 0; k < 8; k++) {
				v.at[p][k] *= r;
				dgain.at[p][k] += d.at[p][k] * v.at[p][k];
				if (Centred) dbias.at[p][k] += d.at[p][k];
				d.at[p][k] *= g[k] + unit;
				sum += d.at[p][k];
				along += d.at[p][k] * v.at[p][k];
			}
		});
		sum = Centred ? overRow(sum, Plus()) / cols : 0;
		along = overRow(along, Plus()) / cols;
		R::each(cols, [&](int p, int j) {
			read<8>(g, more == nullptr ? more : more + row + j);
			for (int k = 0; k < 8; k++) g[k] += rounded<T>(r * (d.at[p][k] - sum - v.at[p][k] * along));
			write<8>(dx + row + j, g);
		});
	}
	putParts(gainPart, dgain, cols);
	if (Centred && biasPart != nullptr) putParts(biasPart, dbias, cols);
}

// Geometry: gradwise, for which the name's number of packs per thread covers a row (launch.go).
#define GRADS(T, t) \
	KERNEL_256 rms_norm_grads1_##t(T* dx, Acc<T>* gainPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) { \
		awaitPrevious(); \
		normGrads<false, 1, T>(dx, gainPart, nullptr, dy, more, x, gain, rows, cols, eps, unit); \
	} \
	KERNEL_256 layer_norm_grads1_##t(T* dx, Acc<T>* gainPart, Acc<T>* biasPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps) { \
		awaitPrevious(); \
		normGrads<true, 1, T>(dx, gainPart, biasPart, dy, more, x, gain, rows, cols, eps, 0); \
	} \
	KERNEL_256 rms_norm_grads2_##t(T* dx, Acc<T>* gainPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) { \
		awaitPrevious(); \
		normGrads<false, 2, T>(dx, gainPart, nullptr, dy, more, x, gain, rows, cols, eps, unit); \
	} \
	KERNEL_256 layer_norm_grads2_##t(T* dx, Acc<T>* gainPart, Acc<T>* biasPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps) { \
		awaitPrevious(); \
		normGrads<true, 2, T>(dx, gainPart, biasPart, dy, more, x, gain, rows, cols, eps, 0); \
	} \
	KERNEL_256 rms_norm_grads3_##t(T* dx, Acc<T>* gainPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) { \
		awaitPrevious(); \
		normGrads<false, 3, T>(dx, gainPart, nullptr, dy, more, x, gain, rows, cols, eps, unit); \
	} \
	KERNEL_256 layer_norm_grads3_##t(T* dx, Acc<T>* gainPart, Acc<T>* biasPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps) { \
		awaitPrevious(); \
		normGrads<true, 3, T>(dx, gainPart, biasPart, dy, more, x, gain, rows, cols, eps, 0); \
	} \
	KERNEL_256 rms_norm_grads4_##t(T* dx, Acc<T>* gainPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps, int unit) { \
		awaitPrevious(); \
		normGrads<false, 4, T>(dx, gainPart, nullptr, dy, more, x, gain, rows, cols, eps, unit); \
	} \
	KERNEL_256 layer_norm_grads4_##t(T* dx, Acc<T>* gainPart, Acc<T>* biasPart, const T* dy, const T* more, const T* x, const T* gain, int rows, int cols, double eps) { \
		awaitPrevious(); \
		normGrads<true, 4, T>(dx, gainPart, biasPart, dy, more, x, gain, rows, cols, eps, 0); \
	}
GRADS(bf16, bf16)
GRADS(f16, f16)
