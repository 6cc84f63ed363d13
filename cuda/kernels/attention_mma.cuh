// Shared by attention on tensor cores. A block has four warps, and a warp has 16 or 32 rows of each tile.
// Scores are in units of log 2, so that a weight is one exp2. Weights and the gradients of scores are
// rounded to T before they are multiplied.
#pragma once
#include "attention.cuh"
#include "mma.cuh"

#define MINUS_INF (-__uint_as_float(0x7f800000u))

// scoreOf2 returns the score of the query at i and the key at j in units of log 2.
template <int E> __device__ inline float scoreOf2(const Attend& s, const Head& d, float x, int i, int j) {
	if (E & caps) x = softcap(x * (float)s.scale, (float)s.softcap) * LOG2E;
	else x *= (float)s.scale * LOG2E;
	if (E & slopes) x += d.slope2 * (j - i);
	return x;
}

// weigh2 is weighSeen with lse in units of log 2; the caller passes the visibility.
template <int E> __device__ inline void weigh2(const Attend& s, const Head& d, float& x, float& dp, float lse, float dot, int i, int j, bool seen) {
	if (!seen || lse == MINUS_INF) x = dp = 0;
	else weigh<E>(s, d, x, dp, exp2Of(scoreOf2<E>(s, d, x, i, j) - lse), dot, i, j);
}

// allSee reports whether all of rows queries from i0 on see all keys from j0 on.
__device__ inline bool allSee(const Attend& s, int i0, int rows, int j0, int keys) {
	return (!s.causal || keyAt(s, j0 + keys - 1) <= queryAt(s, i0)) && (s.window == 0 || keyAt(s, j0) > queryAt(s, i0 + rows - 1) - s.window);
}

// fetchKeys starts copying N keys and values from element first on to a step's two tiles; left are the head's keys from
// there on, in rows that are ld elements apart. It always closes a group of copies, which may be empty.
template <int D, int N, class T> __device__ inline void fetchKeys(T* tiles, int step, const T* k, const T* v, i64 first, i64 ld, int left, bool packs) {
	if (left > 0) {
		fetch<D, N>(tiles + step * 2 * N * pitch<D>, k + first, ld, left, packs);
		fetch<D, N>(tiles + (step * 2 + 1) * N * pitch<D>, v + first, ld, left, packs);
	}
	copyGroup();
}

// loadRows loads 16*M rows of each warp into registers through a tile. No thread may use the tile's
// previous contents afterwards.
template <int D, int M, class T> __device__ inline void loadRows(u32 (&a)[M][D / 16][4], T* tile, const T* x, i64 ld, int rows, bool packs) {
	fetch<D, 64 * M>(tile, x, ld, rows, packs);
	copyGroup();
	copyWait<0>();
	__syncthreads();
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int k = 0; k < D / 16; k++) loadLeft<D>(a[m][k], tile, (threadIdx.y * M + m) * 16, k * 16);
	__syncthreads();
}

// writeRows writes 16 rows of a warp, those below rows. A lane has row first+l/4 and the row 8 below.
template <int D, class T> __device__ inline void writeRows(T* to, i64 ld, const float (&out)[D / 8][4], int first, int rows, float f0, float f1, bool packs) {
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const int i = first + threadIdx.x / 4 + half * 8;
		const float f = half == 0 ? f0 : f1;
		if (i < rows)
#pragma unroll
			for (int n = 0; n < D / 8; n++) writeTwo(to + i * ld + n * 8 + threadIdx.x % 4 * 2, out[n][half * 2] * f, out[n][half * 2 + 1] * f, packs);
	}
}

// readRows is the inverse of writeRows.
template <int D, class T> __device__ inline void readRows(float (&out)[D / 8][4], const T* from, i64 ld, int first, int rows) {
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const int i = first + threadIdx.x / 4 + half * 8;
		if (i < rows)
#pragma unroll
			for (int n = 0; n < D / 8; n++)
				for (int e = 0; e < 2; e++) out[n][half * 2 + e] = wide(from[i * ld + n * 8 + threadIdx.x % 4 * 2 + e]);
	}
}
