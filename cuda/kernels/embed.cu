// Embedding: rows of a table by index, and the gradient of the table. Rows with the same index form a
// bucket, which one block sums in a fixed order. The host makes the buckets of each batch (Buckets in
// embed.go).
#include "base.cuh"

template <int N, class Y, class T> __device__ void embedRow(Y* y, const T* row, int cols) {
	Acc<T> v[N];
	Acc<Y> w[N];
	FOR_COLS(j, cols, N) {
		read<N>(v, row == nullptr ? row : row + j);
		for (int k = 0; k < N; k++) w[k] = (Acc<Y>)v[k];
		write<N>(y + j, w);
	}
}

// for i := range rows { y[i] = table[ids[i]-lo] if lo <= ids[i] < lo+n, else 0 }
template <class Y, class T> __device__ void embed(Y* y, const T* table, const int* ids, int rows, int cols, int lo, int n) {
	constexpr int most = packed<T> > packed<Y> ? packed<T> : packed<Y>;
	FOR_ROWS(i, rows) {
		const int r = here(ids[i], lo, n);
		const T* row = r < 0 ? nullptr : table + (i64)r * cols;
		if (cols % most == 0 && aligned<T>(cols, table, (const T*)y))
			embedRow<most>(y + i * cols, row, cols);
		else
			embedRow<1>(y + i * cols, row, cols);
	}
}

template <int N, class G, class T> __device__ void bucketCols(G* dtable, const T* dy, const int* order, int from, int end, int cols) {
	typedef Acc<G> A;
	SHARED(A, all, 8 * 32 * N);
	for (int j0 = 0; j0 < cols; j0 += 32 * N) {
		const int j = j0 + threadIdx.x * N;
		A sum[N] = {}, v[N];
		if (j < cols)
#pragma unroll 4
			for (int i = from + threadIdx.y; i < end; i += 8) {
				read<N>(v, dy + (i64)order[i] * cols + j);
				for (int k = 0; k < N; k++) sum[k] += v[k];
			}
		__syncthreads(); // the previous sums have been read
		for (int k = 0; k < N; k++) all[(threadIdx.y * 32 + threadIdx.x) * N + k] = sum[k];
		__syncthreads();
		if (threadIdx.y > 0 || j >= cols) continue;
		for (int y = 1; y < 8; y++)
			for (int k = 0; k < N; k++) sum[k] += all[(y * 32 + threadIdx.x) * N + k];
		read<N>(v, dtable + j);
		for (int k = 0; k < N; k++) v[k] += sum[k];
		write<N>(dtable + j, v);
	}
}

// for b := range *buckets { for k := starts[b]; k < starts[b+1] { dtable[rows[b]] += dy[order[k]] } }
// where a bucket's rows are summed first, every eighth row separately.
template <class G, class T>
__device__ void embedGrad(G* dtable, const T* dy, const int* buckets, const int* rows, const int* starts, const int* order, int cols) {
	constexpr int most = packed<T> > packed<G> ? packed<T> : packed<G>;
	const bool packs = cols % most == 0 && aligned<T>(cols, dy, (const T*)dtable);
	for (int b = blockIdx.x; b < *buckets; b += gridDim.x) {
		G* to = dtable + (i64)rows[b] * cols;
		if (packs)
			bucketCols<most>(to, dy, order, starts[b], starts[b + 1], cols);
		else
			bucketCols<1>(to, dy, order, starts[b], starts[b + 1], cols);
	}
}

// Geometry: embed is rowwise; embed_grad has a block for each possible bucket (launch.go).
#define EMBED(Y, T, y_, t)                                                                                              \
	KERNEL embed_##y_##_##t(Y* y, const T* table, const int* ids, int rows, int cols, int lo, int n) {                    \
		awaitPrevious(); \
		embed<Y, T>(y, table, ids, rows, cols, lo, n);                                                                    \
	}
EMBED(double, double, f64, f64)
EACH_COUPLE(EMBED)

#define EMBED_GRAD(G, T, g, t)                                                                                                                   \
	KERNEL embed_grad_##g##_##t(G* dtable, const T* dy, const int* buckets, const int* rows, const int* starts, const int* order, int cols) {       \
		awaitPrevious(); \
		embedGrad<G, T>(dtable, dy, buckets, rows, starts, order, cols);                                                                           \
	}
EMBED_GRAD(double, double, f64, f64)
EACH_COUPLE(EMBED_GRAD)
