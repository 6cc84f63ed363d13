// Attention on tensor cores, for 16-bit types and the usual head dims. attention.cu has the others.
#pragma once
#include "attention_mma.cuh"

// softmaxRow replaces a lane's dot products of one row with n keys from j0 on by weights times dropout. It
// returns the factor for the previous sums.
template <int N, int E>
__device__ inline float softmaxRow(float (&x)[N / 8][4], int half, float& top, float& sum, const Attend& s, const Head& d, int query, int j0, int n, bool all) {
	const int column = threadIdx.x % 4 * 2;
	float most = top;
#pragma unroll
	for (int k = 0; k < N / 8; k++)
#pragma unroll
		for (int e = 0; e < 2; e++) {
			const int j = k * 8 + column + e, at = !(E & slopes) && all ? 0 : keyAt(s, j0 + j);
			float& v = x[k][half * 2 + e];
			v = all || (j < n && sees(s, query, at)) ? scoreOf2<E>(s, d, v, query, at) : MINUS_INF;
			most = maxOf(most, v); // a NaN gets into the sum
		}
	most = maxOf(most, __shfl_xor_sync(0xffffffffu, most, 1));
	most = maxOf(most, __shfl_xor_sync(0xffffffffu, most, 2));
	const float f = most == MINUS_INF ? 1 : exp2Of(top - most), least = most == MINUS_INF ? 0 : most;
	sum *= f;
	top = most;
#pragma unroll
	for (int k = 0; k < N / 8; k++)
#pragma unroll
		for (int e = 0; e < 2; e++) {
			float& v = x[k][half * 2 + e];
			v = exp2Of(v - least);
			sum += v;
			if (E & drops) v *= kept<E, float>(s, d, query, keyAt(s, j0 + k * 8 + column + e));
		}
	return f;
}

// attend computes attention of a tile of 64*M queries from i0 on, N keys at a time.
template <int D, int M, int N, int E, class T> __device__ void attend(T* o, float* lse, const T* q, const T* k, const T* v, const Attend& s, int b, int hg, int i0) {
	SHARED(Pack<T>, store, 4 * N * pitch<D> / 8);
	T* tiles = (T*)store; // keys and values of two steps: double-buffered
	constexpr int tile = N * pitch<D>;
	static_assert(64 * M <= 4 * N, "queries come by way of the tiles");
	const Head d = headOf(s, b, hg);
	const int n = s.heads * s.group, rows = min(64 * M, s.seq - i0), first = firstKey(s, i0), end = endKey(s, i0 + rows - 1), own = threadIdx.y * M * 16;
	const i64 row0 = ((i64)b * s.seq + i0) * n + hg;
	const bool packs = aligned<T>(D, q, k, v, o);
	u32 a[M][D / 16][4];
	loadRows<D, M>(a, tiles, q + queryHead(s, b, i0, hg) * D, (i64)s.qheads * D, rows, packs);
	float out[M][D / 8][4] = {}, top[M][2], sum[M][2];
#pragma unroll
	for (int m = 0; m < M; m++) {
		if (s.more) readRows<D>(out[m], o + row0 * D, (i64)n * D, own + m * 16, rows);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			const int i = own + m * 16 + half * 8 + threadIdx.x / 4;
			top[m][half] = s.more && i < rows ? lse[row0 + (i64)i * n] * LOG2E : MINUS_INF;
			sum[m][half] = top[m][half] == MINUS_INF || threadIdx.x % 4 > 0 ? 0 : 1; // a lane's part of the row's sum
		}
	}
	auto get = [&](int j0, int step) {
		const i64 ld = (i64)s.kheads * D, key = ((i64)d.b * s.kseq + j0) * ld + d.h * D; // in each step: takes fewer registers
		fetchKeys<D, N>(tiles, step, k, v, key, ld, end - j0, packs);
	};
	get(first, 0);
	for (int j0 = first, step = 0; j0 < end; j0 += N, step ^= 1) {
		get(j0 + N, step ^ 1);
		copyWait<1>();
		__syncthreads(); // this step's tiles have arrived
		const T *kt = tiles + step * 2 * tile, *vt = kt + tile;
		float x[M][N / 8][4] = {};
		timesRows<D, N, M>(x, a, kt);
		const bool all = j0 + N <= end && allSee(s, i0, rows, j0, N);
#pragma unroll
		for (int m = 0; m < M; m++)
#pragma unroll
			for (int half = 0; half < 2; half++) {
				const int query = queryAt(s, i0 + own + m * 16 + half * 8 + threadIdx.x / 4);
				const float f = softmaxRow<N, E>(x[m], half, top[m][half], sum[m][half], s, d, query, j0, end - j0, all);
#pragma unroll
				for (int c = 0; c < D / 8; c++) out[m][c][half * 2] *= f, out[m][c][half * 2 + 1] *= f;
			}
		timesTile<D, N, M>(out, x, vt);
		__syncthreads(); // this step's tiles have been read
	}
	copyWait<0>();
#pragma unroll
	for (int m = 0; m < M; m++) {
		float f[2];
#pragma unroll
		for (int half = 0; half < 2; half++) {
			float all = sum[m][half];
			all += __shfl_xor_sync(0xffffffffu, all, 1);
			all += __shfl_xor_sync(0xffffffffu, all, 2);
			const bool any = all > 0 || all != all;
			const int i = own + m * 16 + half * 8 + threadIdx.x / 4;
			f[half] = any ? 1 / all : 1;
			if (threadIdx.x % 4 == 0 && i < rows) lse[row0 + (i64)i * n] = any ? top[m][half] / LOG2E + logf(all) : MINUS_INF;
		}
		writeRows<D>(o + row0 * D, (i64)n * D, out[m], own + m * 16, rows, f[0], f[1], packs);
	}
}

// for each query i of (batch, head, group) { p_j = exp(s_ij - lse_i), lse_i = log sum_j exp(s_ij); o_i =
// sum_j p_j * z_ij * v_j }
// over visible keys j, like attention of attention.cu, with dim = vdim = D.
template <int D, int M, int N, int E, class T> __device__ void attention(T* o, float* lse, const T* q, const T* k, const T* v, const Attend& s) {
	const int blocks = (s.seq + 64 * M - 1) / (64 * M), n = s.heads * s.group;
	for (i64 u = blockIdx.x; u < (i64)s.batch * n * blocks; u += gridDim.x)
		// the queries that see most keys come first
		attend<D, M, N, E>(o, lse, q, k, v, s, u / blocks / n, u / blocks % n, (int)(blocks - 1 - u % blocks) * 64 * M);
}
