// Attention in tiles of 32 queries and 32 keys, for every type and every head dim. A block has four warps;
// a warp has eight queries of a tile, and a lane has one key. Softmax is computed online, and recomputed
// from lse in the gradient. Sums run over keys, and then over queries, in their order.
//
// The gradient has three kernels, so that no two blocks add to the same sum: do·o of each query; dq with a
// block for each tile of queries; dk and dv with a block for each tile of keys.
#include "attention.cuh"

#define TILE 32
#define EACH 8 // queries per warp

// dotRows adds to s the dot products of rows x[8*warp+r] and y[lane]. x has xs rows, y has ys.
template <class T> __device__ void dotRows(Acc<T> (&s)[EACH], const T* x, i64 ldx, int xs, const T* y, i64 ldy, int ys, int dim) {
	typedef Acc<T> A;
	SHARED(A, a, TILE * (TILE + 1));
	SHARED(A, b, TILE * (TILE + 1));
	const int lane = threadIdx.x, warp = threadIdx.y;
	for (int d0 = 0; d0 < dim; d0 += TILE) {
		const int n = min(TILE, dim - d0);
		__syncthreads(); // the previous contents have been read
		if (lane < n)
			for (int r = warp; r < TILE; r += 4) {
				a[r * (TILE + 1) + lane] = r < xs ? wide(x[r * ldx + d0 + lane]) : 0;
				b[r * (TILE + 1) + lane] = r < ys ? wide(y[r * ldy + d0 + lane]) : 0;
			}
		__syncthreads();
#pragma unroll 2
		for (int d = 0; d < n; d++) {
			const A v = b[lane * (TILE + 1) + d];
#pragma unroll
			for (int r = 0; r < EACH; r++) s[r] += a[(warp * EACH + r) * (TILE + 1) + d] * v;
		}
	}
}

// A thread sums one column of a chunk of W columns, over perThread rows from firstRow on.
template <int W> constexpr int perThread = TILE * W / 128;
template <int W> __device__ inline int column() { return (threadIdx.y * 32 + threadIdx.x) % W; }
template <int W> __device__ inline int firstRow() { return (threadIdx.y * 32 + threadIdx.x) / W * perThread<W>; }

// addRows computes sum[r] += p[row r of the thread, k] * y[k] over the n rows of y, or p[k, row r] if
// transposed. y is at the thread's column.
template <int W, bool transposed, class T> __device__ inline void addRows(Acc<T> (&sum)[perThread<W>], const Acc<T>* p, const T* y, i64 ldy, int n) {
	const int first = firstRow<W>();
#pragma unroll 2
	for (int k = 0; k < n; k++) {
		const Acc<T> v = wide(y[k * ldy]);
#pragma unroll
		for (int r = 0; r < perThread<W>; r++) sum[r] += p[transposed ? k * (TILE + 1) + first + r : (first + r) * (TILE + 1) + k] * v;
	}
}

// attend computes attention of a tile of queries from i0 on, for W columns of v from c0 on.
template <int W, class T> __device__ void attend(T* o, Acc<T>* lse, const T* q, const T* k, const T* v, const Attend& s, int b, int hg, int i0, int c0) {
	typedef Acc<T> A;
	const A none = -(A)__uint_as_float(0x7f800000u);
	const Head d = headOf(s, b, hg);
	const int lane = threadIdx.x, warp = threadIdx.y, n = s.heads * s.group, rows = min(TILE, s.seq - i0), c = c0 + column<W>();
	const i64 row0 = ((i64)b * s.seq + i0) * n + hg;
	SHARED(A, p, TILE * (TILE + 1));
	SHARED(A, factor, TILE);
	A top[EACH], sum[EACH], out[perThread<W>];
	for (int r = 0; r < EACH; r++) {
		const int i = warp * EACH + r;
		top[r] = s.more && i < rows ? lse[row0 + (i64)i * n] : none;
		sum[r] = top[r] == none ? 0 : 1; // of exp(score - lse)
	}
	for (int r = 0; r < perThread<W>; r++) {
		const int i = firstRow<W>() + r;
		out[r] = s.more && i < rows && c < s.vdim ? wide(o[(row0 + (i64)i * n) * s.vdim + c]) : 0;
	}
	const int end = endKey(s, i0 + rows - 1);
	for (int j0 = firstKey(s, i0); j0 < end; j0 += TILE) {
		const int keys = min(TILE, end - j0);
		A x[EACH] = {};
		dotRows(x, q + queryHead(s, b, i0, hg) * s.dim, (i64)s.qheads * s.dim, rows, k + keyHead(s, b, j0, d.h) * s.dim, (i64)s.kheads * s.dim, keys, s.dim);
		const int at = keyAt(s, j0 + lane);
		for (int r = 0; r < EACH; r++) {
			const int i = queryAt(s, i0 + warp * EACH + r);
			const bool seen = lane < keys && warp * EACH + r < rows && sees(s, i, at);
			x[r] = seen ? score(s, d, x[r], i, at) : none;
			const A most = overRow(Larger()(top[r], x[r]), Larger()), f = most == none ? (A)1 : expOf(top[r] - most);
			A w = seen && most != none ? expOf(x[r] - most) : 0;
			sum[r] = sum[r] * f + overRow(w, Plus());
			top[r] = most;
			if (seen) w *= kept<asks, A>(s, d, i, at);
			p[(warp * EACH + r) * (TILE + 1) + lane] = w;
			if (lane == 0) factor[warp * EACH + r] = f;
		}
		__syncthreads();
		for (int r = 0; r < perThread<W>; r++) out[r] *= factor[firstRow<W>() + r];
		if (c < s.vdim) addRows<W, false>(out, p, v + keyHead(s, b, j0, d.h) * s.vdim + c, (i64)s.kheads * s.vdim, keys);
		__syncthreads(); // p and factor have been read
	}
	for (int r = 0; r < EACH; r++) {
		const int i = warp * EACH + r;
		const bool any = sum[r] > 0 || sum[r] != sum[r];
		if (lane == 0) factor[i] = any ? 1 / sum[r] : 1;
		if (lane == 0 && c0 == 0 && i < rows) lse[row0 + (i64)i * n] = any ? top[r] + logOf(sum[r]) : none;
	}
	__syncthreads();
	for (int r = 0; r < perThread<W>; r++) {
		const int i = firstRow<W>() + r;
		if (i < rows && c < s.vdim) o[(row0 + (i64)i * n) * s.vdim + c] = narrow<T>(out[r] * factor[i]);
	}
	__syncthreads(); // factor has been read
}

// for each query i of (batch, head, group) {
//	p_j = exp(s_ij - lse_i), lse_i = log sum_j exp(s_ij), j over visible keys
//	o_i = sum_j p_j * z_ij * v_j
// }
// with s, z and visibility as in cpu.Attention. If s.more, o and lse hold the result for other keys, and
// these keys are added.
template <class T> __device__ void attention(T* o, Acc<T>* lse, const T* q, const T* k, const T* v, const Attend& s) {
	const int blocks = (s.seq + TILE - 1) / TILE, n = s.heads * s.group;
	for (i64 u = blockIdx.x; u < (i64)s.batch * n * blocks; u += gridDim.x) {
		// the queries that see most keys come first
		const int i0 = (blocks - 1 - u % blocks) * TILE, b = u / blocks / n, hg = u / blocks % n;
		const int width = s.vdim <= 64 ? 64 : 128;
		// the chunk that writes lse is the last, because with s.more the others read it
		for (int c0 = (s.vdim - 1) / width * width; c0 >= 0; c0 -= width) {
			if (s.more ? blockIdx.y > 0 : c0 / width % gridDim.y != blockIdx.y) continue;
			if (width == 64)
				attend<64>(o, lse, q, k, v, s, b, hg, i0, c0);
			else
				attend<128>(o, lse, q, k, v, s, b, hg, i0, c0);
		}
	}
}

// for i := range rows { dot[i] = sum_j do[i,j]*o[i,j] }
template <int N, class T> __device__ Acc<T> dotRow(const T* dout, const T* o, int cols) {
	Acc<T> v[N], w[N], sum = 0;
	FOR_COLS(j, cols, N) {
		read<N>(v, dout + j);
		read<N>(w, o + j);
		for (int k = 0; k < N; k++) sum += v[k] * w[k];
	}
	return overRow(sum, Plus());
}
template <class T> __device__ void attentionDot(Acc<T>* dot, const T* dout, const T* o, i64 rows, int cols) {
	FOR_ROWS(i, rows) {
		const T *x = dout + i * cols, *y = o + i * cols;
		const Acc<T> sum = aligned<T>(cols, dout, o) ? dotRow<packed<T>>(x, y, cols) : dotRow<1>(x, y, cols);
		if (threadIdx.x == 0) dot[i] = sum;
	}
}

// weighTile writes the gradient of a tile's scores, ds, to w, or, if !slope, the weights p*z. Rows are
// queries. lse and dot are those of the first query.
template <class T>
__device__ void weighTile(Acc<T>* w, const T* q, const T* k, const T* v, const T* dout, const Acc<T>* lse, const Acc<T>* dot, const Attend& s, const Head& d, int i0, int rows, int j0, int keys, bool slope) {
	typedef Acc<T> A;
	const int lane = threadIdx.x, warp = threadIdx.y, n = s.heads * s.group, at = keyAt(s, j0 + lane);
	A x[EACH] = {}, dp[EACH] = {};
	dotRows(x, q, (i64)s.qheads * s.dim, rows, k, (i64)s.kheads * s.dim, keys, s.dim);
	if (slope) dotRows(dp, dout, (i64)n * s.vdim, rows, v, (i64)s.kheads * s.vdim, keys, s.vdim);
	for (int r = 0; r < EACH; r++) {
		const int i = warp * EACH + r;
		if (i < rows && lane < keys)
			weighSeen(s, d, x[r], dp[r], lse[(i64)i * n], dot[(i64)i * n], queryAt(s, i0 + i), at);
		else
			x[r] = dp[r] = 0;
		w[i * (TILE + 1) + lane] = slope ? dp[r] : x[r];
	}
	__syncthreads();
}

// Computes W columns of dq of a tile of queries, from c0 on.
template <int W, class T>
__device__ void gradQ(T* dq, const T* dout, const T* q, const T* k, const T* v, const Acc<T>* lse, const Acc<T>* dot, const Attend& s, int b, int hg, int i0, int c0) {
	typedef Acc<T> A;
	const Head d = headOf(s, b, hg);
	const int n = s.heads * s.group, rows = min(TILE, s.seq - i0), c = c0 + column<W>(), end = endKey(s, i0 + rows - 1);
	const i64 row0 = ((i64)b * s.seq + i0) * n + hg;
	const i64 query0 = queryHead(s, b, i0, hg);
	SHARED(A, w, TILE * (TILE + 1));
	A sum[perThread<W>];
	for (int r = 0; r < perThread<W>; r++) {
		const int i = firstRow<W>() + r;
		sum[r] = s.more && i < rows && c < s.dim ? wide(dq[(query0 + (i64)i * s.qheads) * s.dim + c]) : 0;
	}
	for (int j0 = firstKey(s, i0); j0 < end; j0 += TILE) {
		const int keys = min(TILE, end - j0);
		const i64 key = keyHead(s, b, j0, d.h);
		weighTile(w, q + query0 * s.dim, k + key * s.dim, v + key * s.vdim, dout + row0 * s.vdim, lse + row0, dot + row0, s, d, i0, rows, j0, keys, true);
		if (c < s.dim) addRows<W, false>(sum, w, k + key * s.dim + c, (i64)s.kheads * s.dim, keys);
		__syncthreads(); // w has been read
	}
	for (int r = 0; r < perThread<W>; r++) {
		const int i = firstRow<W>() + r;
		if (i < rows && c < s.dim) dq[(query0 + (i64)i * s.qheads) * s.dim + c] = narrow<T>(sum[r]);
	}
}

// Computes W columns of dk, or of dv if values, of a tile of keys, from c0 on.
template <int W, class T>
__device__ void gradKV(T* dkv, const T* dout, const T* q, const T* k, const T* v, const Acc<T>* lse, const Acc<T>* dot, const Attend& s, int b, int h, int j0, int c0, bool values) {
	typedef Acc<T> A;
	const int n = s.heads * s.group, keys = min(TILE, s.kseq - j0), c = c0 + column<W>(), width = values ? s.vdim : s.dim;
	const int end = endQuery(s, j0 + keys - 1);
	const i64 key = keyHead(s, b, j0, h);
	SHARED(A, w, TILE * (TILE + 1));
	A sum[perThread<W>] = {};
	for (int g = 0; g < s.group; g++) {
		const Head d = headOf(s, b, h * s.group + g);
		for (int i0 = firstQuery(s, j0); i0 < end; i0 += TILE) {
			const int rows = min(TILE, end - i0);
			const i64 row = ((i64)b * s.seq + i0) * n + h * s.group + g;
			const T *query = q + queryHead(s, b, i0, h * s.group + g) * s.dim, *slope = dout + row * s.vdim;
			weighTile(w, query, k + key * s.dim, v + key * s.vdim, slope, lse + row, dot + row, s, d, i0, rows, j0, keys, !values);
			if (c < width) addRows<W, true>(sum, w, (values ? slope : query) + c, (i64)(values ? n : s.qheads) * width, rows);
			__syncthreads(); // w has been read
		}
	}
	for (int r = 0; r < perThread<W>; r++) {
		const int j = firstRow<W>() + r;
		if (j < keys && c < width) dkv[(key + (i64)j * s.kheads) * width + c] = narrow<T>(sum[r]);
	}
}

// for each query i of (batch, head, group), each visible key j { dq_i += ds*k_j }
// from zero, or from dq if s.more, with ds = p_j * (z_ij * do_i·v_j - dot_i) * scale *
// softcap'(scale*q_i·k_j).
template <class T>
__device__ void attentionGradQ(T* dq, const T* dout, const T* q, const T* k, const T* v, const Acc<T>* lse, const Acc<T>* dot, const Attend& s) {
	const int blocks = (s.seq + TILE - 1) / TILE, n = s.heads * s.group, width = s.dim <= 64 ? 64 : 128;
	for (i64 u = blockIdx.x; u < (i64)s.batch * n * blocks; u += gridDim.x) {
		const int i0 = (blocks - 1 - u % blocks) * TILE, b = u / blocks / n, hg = u / blocks % n;
		for (int c0 = blockIdx.y * width; c0 < s.dim; c0 += gridDim.y * width) {
			if (width == 64)
				gradQ<64>(dq, dout, q, k, v, lse, dot, s, b, hg, i0, c0);
			else
				gradQ<128>(dq, dout, q, k, v, lse, dot, s, b, hg, i0, c0);
		}
	}
}

// for each query i of (batch, head, group), each visible key j { dk_j += ds*q_i; dv_j += p_j*z_ij*do_i }
// from zero.
template <class T>
__device__ void attentionGradKV(T* dk, T* dv, const T* dout, const T* q, const T* k, const T* v, const Acc<T>* lse, const Acc<T>* dot, const Attend& s) {
	const int blocks = (s.kseq + TILE - 1) / TILE, width = max(s.dim, s.vdim) <= 64 ? 64 : 128;
	const int keyChunks = (s.dim + width - 1) / width, chunks = keyChunks + (s.vdim + width - 1) / width;
	for (i64 u = blockIdx.x; u < (i64)s.batch * s.heads * blocks; u += gridDim.x) {
		const int j0 = u % blocks * TILE, b = u / blocks / s.heads, h = u / blocks % s.heads;
		for (int y = blockIdx.y; y < chunks; y += gridDim.y) {
			const bool values = y >= keyChunks;
			const int c0 = (values ? y - keyChunks : y) * width;
			if (width == 64)
				gradKV<64>(values ? dv : dk, dout, q, k, v, lse, dot, s, b, h, j0, c0, values);
			else
				gradKV<128>(values ? dv : dk, dout, q, k, v, lse, dot, s, b, h, j0, c0, values);
		}
	}
}

// Geometry: a block of four warps for each tile of queries, in grad_kv of keys; the grid's second dim has
// the chunks of columns (launch.go).
#define ATTENTION(T, t)                                                                                                                  \
	KERNEL_128 attention_##t(T* o, Acc<T>* lse, const T* q, const T* k, const T* v, Attend shape) { awaitPrevious(); attention<T>(o, lse, q, k, v, shape); }  \
	KERNEL attention_dot_##t(Acc<T>* dot, const T* dout, const T* o, i64 rows, int cols) { awaitPrevious(); attentionDot<T>(dot, dout, o, rows, cols); }  \
	KERNEL_128 attention_grad_q_##t(T* dq, const T* dout, const T* q, const T* k, const T* v, const Acc<T>* lse, const Acc<T>* dot, Attend shape) { \
		awaitPrevious(); \
		attentionGradQ<T>(dq, dout, q, k, v, lse, dot, shape);                                                                           \
	}                                                                                                                                    \
	KERNEL_128 attention_grad_kv_##t(T* dk, T* dv, const T* dout, const T* q, const T* k, const T* v, const Acc<T>* lse, const Acc<T>* dot, Attend shape) { \
		awaitPrevious(); \
		attentionGradKV<T>(dk, dv, dout, q, k, v, lse, dot, shape);                                                                      \
	}
EACH_TYPE(ATTENTION)
