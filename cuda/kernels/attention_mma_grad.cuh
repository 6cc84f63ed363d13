// The gradient of attention on tensor cores: dq with a block for each tile of queries, dk and dv with a
// block for each tile of keys, so that every sum has one block and one order. attention.cu computes do·o.
#pragma once
#include "attention_mma.cuh"

// gradQ computes dq of 64 queries from i0 on, N keys at a time.
template <int D, int N, int E, class T>
__device__ void gradQ(T* dq, const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot, const Attend& s, int b, int hg, int i0) {
	SHARED(Pack<T>, store, 4 * N * pitch<D> / 8);
	T* tiles = (T*)store; // keys and values of two steps: double-buffered
	constexpr int tile = N * pitch<D>;
	const Head d = headOf(s, b, hg);
	const int n = s.heads * s.group, rows = min(64, s.seq - i0), first = firstKey(s, i0), end = endKey(s, i0 + rows - 1), own = threadIdx.y * 16, column = threadIdx.x % 4 * 2;
	const i64 row0 = ((i64)b * s.seq + i0) * n + hg, query0 = queryHead(s, b, i0, hg) * D, ldq = (i64)s.qheads * D;
	const bool packs = aligned<T>(D, q, k, v, dout) && aligned<T>(D, dq);
	u32 a[1][D / 16][4], da[1][D / 16][4];
	loadRows<D, 1>(a, tiles, q + query0, ldq, rows, packs);
	loadRows<D, 1>(da, tiles, dout + row0 * D, (i64)n * D, rows, packs);
	float out[1][D / 8][4] = {}, l[2], dots[2];
	if (s.more) readRows<D>(out[0], dq + query0, ldq, own, rows);
	for (int half = 0; half < 2; half++) {
		const int i = own + half * 8 + threadIdx.x / 4;
		l[half] = i < rows ? lse[row0 + (i64)i * n] * LOG2E : MINUS_INF;
		dots[half] = i < rows ? dot[row0 + (i64)i * n] : 0;
	}
	const i64 key0 = keyHead(s, b, 0, d.h) * D; // once: in each step, it takes more registers than there are
	auto get = [&](int j0, int step) { fetchKeys<D, N>(tiles, step, k, v, key0 + (i64)j0 * (s.kheads * D), s.kheads * D, end - j0, packs); };
	get(first, 0);
	for (int j0 = first, step = 0; j0 < end; j0 += N, step ^= 1) {
		get(j0 + N, step ^ 1);
		copyWait<1>();
		__syncthreads(); // this step's tiles have arrived
		const T *kt = tiles + step * 2 * tile, *vt = kt + tile;
		float x[1][N / 8][4] = {}, dp[1][N / 8][4] = {};
		timesRows<D, N, 1>(x, a, kt);
		timesRows<D, N, 1>(dp, da, vt);
		const bool all = j0 + N <= end && allSee(s, i0, rows, j0, N);
#pragma unroll
		for (int c = 0; c < N / 8; c++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int j = c * 8 + column + e % 2, at = keyAt(s, j0 + j), query = queryAt(s, i0 + own + e / 2 * 8 + threadIdx.x / 4);
				weigh2<E>(s, d, x[0][c][e], dp[0][c][e], l[e / 2], dots[e / 2], query, at, all || (j0 + j < end && sees(s, query, at)));
			}
		timesTile<D, N, 1>(out, dp, kt);
		__syncthreads(); // this step's tiles have been read
	}
	copyWait<0>();
	writeRows<D>(dq + query0, ldq, out[0], own, rows, 1, 1, packs);
}

// gradKV computes dk and dv of 64 keys from j0 on, N queries at a time, one query head after the other.
template <int D, int N, int E, class T>
__device__ void gradKV(T* dk, T* dv, const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot, const Attend& s, int b, int h, int j0) {
	SHARED(Pack<T>, store, 4 * N * pitch<D> / 8);
	SHARED(float, known, 2 * 2 * N); // lse and dot of two steps
	T* tiles = (T*)store;            // queries and do of two steps: double-buffered
	constexpr int tile = N * pitch<D>;
	static_assert(64 <= 4 * N, "keys come by way of the tiles");
	const int n = s.heads * s.group, keys = min(64, s.kseq - j0), first = firstQuery(s, j0), end = endQuery(s, j0 + keys - 1), own = threadIdx.y * 16, column = threadIdx.x % 4 * 2;
	const int steps = first < end ? (end - first + N - 1) / N : 0; // per head
	const i64 key = keyHead(s, b, j0, h), ld = (i64)s.kheads * D;
	const bool packs = aligned<T>(D, q, k, v, dout) && aligned<T>(D, dk, dv);
	u32 a[1][D / 16][4], va[1][D / 16][4];
	loadRows<D, 1>(a, tiles, k + key * D, ld, keys, packs);
	loadRows<D, 1>(va, tiles, v + key * D, ld, keys, packs);
	float dks[1][D / 8][4] = {}, dvs[1][D / 8][4] = {};
	auto get = [&](int u, int step) {
		if (u < steps * s.group) {
			const int i0 = first + u % steps * N, i = threadIdx.y * 32 + threadIdx.x;
			const int hg = h * s.group + u / steps;
			const i64 row = ((i64)b * s.seq + i0) * n + hg;
			fetch<D, N>(tiles + step * 2 * tile, q + queryHead(s, b, i0, hg) * D, (i64)s.qheads * D, end - i0, packs);
			fetch<D, N>(tiles + (step * 2 + 1) * tile, dout + row * D, (i64)n * D, end - i0, packs);
			if (i < N) {
				known[step * 2 * N + i] = i0 + i < end ? lse[row + (i64)i * n] * LOG2E : MINUS_INF;
				known[(step * 2 + 1) * N + i] = i0 + i < end ? dot[row + (i64)i * n] : 0;
			}
		}
		copyGroup();
	};
	get(0, 0);
	for (int u = 0, step = 0; u < steps * s.group; u++, step ^= 1) {
		get(u + 1, step ^ 1);
		copyWait<1>();
		__syncthreads(); // this step's tiles have arrived
		const T *qt = tiles + step * 2 * tile, *dot_ = qt + tile;
		const int i0 = first + u % steps * N, rows = min(N, end - i0);
		const Head d = headOf(s, b, h * s.group + u / steps);
		float x[1][N / 8][4] = {}, dp[1][N / 8][4] = {};
		timesRows<D, N, 1>(x, a, qt);
		timesRows<D, N, 1>(dp, va, dot_);
		const bool all = keys == 64 && rows == N && allSee(s, i0, rows, j0, keys);
#pragma unroll
		for (int c = 0; c < N / 8; c++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int i = c * 8 + column + e % 2, j = own + e / 2 * 8 + threadIdx.x / 4, query = queryAt(s, i0 + i), at = keyAt(s, j0 + j);
				const float l = known[step * 2 * N + i], o = known[(step * 2 + 1) * N + i];
				weigh2<E>(s, d, x[0][c][e], dp[0][c][e], l, o, query, at, all || (i < rows && j < keys && sees(s, query, at)));
			}
		timesTile<D, N, 1>(dvs, x, dot_);
		timesTile<D, N, 1>(dks, dp, qt);
		__syncthreads(); // this step's tiles have been read
	}
	copyWait<0>();
	writeRows<D>(dk + key * D, ld, dks[0], own, keys, 1, 1, packs);
	writeRows<D>(dv + key * D, ld, dvs[0], own, keys, 1, 1, packs);
}

// for each query i of (batch, head, group), each visible key j { dq_i += ds*k_j }
// like attention_grad_q of attention.cu.
template <int D, int N, int E, class T>
__device__ void attentionGradQ(T* dq, const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot, const Attend& s) {
	const int blocks = (s.seq + 63) / 64, n = s.heads * s.group;
	for (i64 u = blockIdx.x; u < (i64)s.batch * n * blocks; u += gridDim.x)
		gradQ<D, N, E>(dq, dout, q, k, v, lse, dot, s, u / blocks / n, u / blocks % n, (int)(blocks - 1 - u % blocks) * 64);
}

// for each query i of (batch, head, group), each visible key j { dk_j += ds*q_i; dv_j += p_j*z_ij*do_i }
// like attention_grad_kv of attention.cu.
template <int D, int N, int E, class T>
__device__ void attentionGradKV(T* dk, T* dv, const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot, const Attend& s) {
	const int blocks = (s.kseq + 63) / 64;
	for (i64 u = blockIdx.x; u < (i64)s.batch * s.heads * blocks; u += gridDim.x)
		gradKV<D, N, E>(dk, dv, dout, q, k, v, lse, dot, s, u / blocks / s.heads, u / blocks % s.heads, (int)(u % blocks) * 64);
}
