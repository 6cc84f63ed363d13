// Multiplication of tiles on tensor cores: 16-bit fragments, accumulated in float. A warp computes 16 rows
// and 8 columns over 16 products at a time (mma.sync m16n8k16). Lane l has rows l/4 and l/4+8, columns
// 2*(l%4) and the next one.
#pragma once
#include "base.cuh"

#ifndef EMULATED
__device__ inline u32 sharedAt(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// loadMatrices loads four 8x8 matrices. Lane l passes the address of row l%8 of matrix l/8. A lane gets the
// two elements at its row and columns of each matrix or, if transposed, of its transpose.
template <bool transposed> __device__ inline void loadMatrices(u32 (&r)[4], const void* row) {
	if (transposed)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAt(row)) : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAt(row)) : "memory");
}

// multiply computes c += a*b.
template <class T> __device__ inline void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <> __device__ inline void multiply<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ inline void multiply<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// copy16 starts copying 16 bytes to shared memory; those from bytes on are set to 0. copyGroup closes a
// group of copies. copyWait waits for all groups except the last n.
__device__ inline void copy16(void* to, const void* from, int bytes) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(sharedAt(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void copyGroup() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int n> __device__ inline void copyWait() { asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory"); }

// twoOf packs two numbers, rounded to T, with lo in the lower half.
template <class T> __device__ inline u32 twoOf(float lo, float hi);
template <> __device__ inline u32 twoOf<bf16>(float lo, float hi) {
	u32 y;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
	return y;
}
template <> __device__ inline u32 twoOf<f16>(float lo, float hi) {
	u32 y;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
	return y;
}
#else
template <bool transposed> inline void loadMatrices(u32 (&r)[4], const void* row) { emulate::loadMatrices(r, row, transposed); }
template <class T> inline void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
	emulate::multiply(c, a, b0, b1, [](unsigned short x) { return wide(T{x}); });
}
inline void copy16(void* to, const void* from, int bytes) { emulate::copy16(to, from, bytes); }
inline void copyGroup() { emulate::copyGroup(); }
template <int n> inline void copyWait() { emulate::copyWait(n); }
template <class T> inline u32 twoOf(float lo, float hi) { return narrow<T>(lo).bits | (u32)narrow<T>(hi).bits << 16; }
#endif

// pitch is the distance of rows of a tile in shared memory: D elements plus 16 bytes, so that eight rows at
// one column are in different banks.
template <int D> constexpr int pitch = D + 8;

// fetch starts copying n rows of x, which are ld apart, to a tile of R rows, and sets the others to 0. If x
// is not aligned, it copies at once. All 128 threads must call it.
template <int D, int R, class T> __device__ inline void fetch(T* tile, const T* x, i64 ld, int n, bool packs) {
	for (int u = threadIdx.y * 32 + threadIdx.x; u < R * (D / 8); u += 128) {
		const int r = u / (D / 8), c = u % (D / 8) * 8;
		T* to = tile + r * pitch<D> + c;
		const T* from = x + (r < n ? r : 0) * ld + c;
		if (packs)
			copy16(to, from, r < n ? 16 : 0);
		else
			for (int e = 0; e < 8; e++) to[e] = r < n ? from[e] : T{0};
	}
}

// loadLeft loads the left operand: 16 rows from row on and 16 columns from column on.
template <int D, class T> __device__ inline void loadLeft(u32 (&a)[4], const T* tile, int row, int column) {
	const int lane = threadIdx.x;
	loadMatrices<false>(a, tile + (row + lane % 16) * pitch<D> + column + lane / 16 * 8);
}

// timesRows computes s += a * tile^T for M times 16 rows of a and the N rows of a tile.
template <int D, int N, int M, class T> __device__ inline void timesRows(float (&s)[M][N / 8][4], const u32 (&a)[M][D / 16][4], const T* tile) {
	const int lane = threadIdx.x;
#pragma unroll
	for (int k = 0; k < D / 16; k++)
#pragma unroll
		for (int n = 0; n < N / 16; n++) {
			u32 b[4];
			loadMatrices<false>(b, tile + (n * 16 + lane / 16 * 8 + lane % 8) * pitch<D> + k * 16 + lane / 8 % 2 * 8);
#pragma unroll
			for (int m = 0; m < M; m++) {
				multiply<T>(s[m][2 * n], a[m][k], b[0], b[1]);
				multiply<T>(s[m][2 * n + 1], a[m][k], b[2], b[3]);
			}
		}
}

// timesTile computes out += p * tile for M times 16 rows of p, rounded to T, and the N rows of a tile.
template <int D, int N, int M, class T> __device__ inline void timesTile(float (&out)[M][D / 8][4], const float (&p)[M][N / 8][4], const T* tile) {
	const int lane = threadIdx.x;
#pragma unroll
	for (int k = 0; k < N / 16; k++) {
		u32 a[M][4];
#pragma unroll
		for (int m = 0; m < M; m++)
#pragma unroll
			for (int i = 0; i < 4; i++) a[m][i] = twoOf<T>(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
		for (int n = 0; n < D / 16; n++) {
			u32 b[4];
			loadMatrices<true>(b, tile + (k * 16 + lane / 8 % 2 * 8 + lane % 8) * pitch<D> + n * 16 + lane / 16 * 8);
#pragma unroll
			for (int m = 0; m < M; m++) {
				multiply<T>(out[m][2 * n], a[m], b[0], b[1]);
				multiply<T>(out[m][2 * n + 1], a[m], b[2], b[3]);
			}
		}
	}
}

// writeTwo writes two consecutive numbers.
template <class T> __device__ inline void writeTwo(T* to, float a, float b, bool packs) {
	if (packs)
		*(u32*)to = twoOf<T>(a, b);
	else
		to[0] = narrow<T>(a), to[1] = narrow<T>(b);
}
