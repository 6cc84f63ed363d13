// Copies tokens to slots of their experts and back. One launch finds the slot of each choice and the choice
// in each slot. The kernels that move rows then only gather, so that every sum has one order.
#include "base.cuh"

// Scan ranks the choices that a block's predicate selects, in their order, 256 at a time.
struct Scan {
	int before; // number selected so far
	// rank returns how many are selected before this thread's. All threads of the block must call it.
	__device__ int rank(bool hit) {
		SHARED(int, count, 8);
		const u32 mine = __ballot_sync(0xffffffffu, hit);
		__syncthreads(); // the previous counts have been read
		if (threadIdx.x % 32 == 0) count[threadIdx.x / 32] = __popc(mine);
		__syncthreads();
		int r = before + __popc(mine & ((1u << threadIdx.x % 32) - 1));
		for (int w = 0; w < 8; w++) {
			if (w < threadIdx.x / 32) r += count[w];
			before += count[w];
		}
		return r;
	}
};

// for i := range choices { e = index[i]; at = (how many of index[:i] are e) - round*slots; if 0 <= at <
// slots { slot[i] = e*slots+at; from[slot[i]] = i } }
// and count[e] = how many of index are e. Other elements of slot and from become -1. A negative e has no
// slot.
KERNEL slots_i32(int* slot, int* from, int* count, const int* index, int choices, int experts, int slots, int round) {
	awaitPrevious();
	for (int e = blockIdx.x; e < experts; e += gridDim.x) {
		Scan scan = {0};
		for (int i0 = 0; i0 < choices; i0 += 256) {
			const int i = i0 + threadIdx.x, mine = i < choices ? index[i] : -1;
			const i64 at = scan.rank(mine == e) - (i64)round * slots;
			const bool has = mine == e && at >= 0 && at < slots;
			if (has) from[e * slots + (int)at] = i;
			if (mine == e || (mine < 0 && e == 0 && i < choices)) slot[i] = has ? e * slots + (int)at : -1;
		}
		const i64 filled = scan.before - (i64)round * slots;
		for (int k = threadIdx.x; k < slots; k += 256)
			if (k >= filled) from[e * slots + k] = -1;
		if (threadIdx.x == 0) count[e] = scan.before;
	}
}

// for e := range experts { kept[e] = how many of index are e; all[e] = how many are e or, of a choice that is dropped, -1-e }
KERNEL census_i32(int* kept, int* all, const int* index, int choices, int experts) {
	awaitPrevious();
	for (int e = blockIdx.x; e < experts; e += gridDim.x) {
		int in = 0, out = 0;
		for (int i = threadIdx.x; i < choices; i += 256) {
			in += index[i] == e;
			out += index[i] == -1 - e;
		}
		in = overRow(in, Plus());
		out = overRow(out, Plus());
		if (threadIdx.x == 0) {
			kept[e] = in;
			all[e] = in + out;
		}
	}
}

// out = max(1, the number of rounds of slots that the largest count needs)
KERNEL rounds_i32(int* out, const int* count, int experts, int slots) {
	awaitPrevious();
	int most = 1;
	for (int e = threadIdx.x; e < experts; e += 256) most = count[e] > most ? count[e] : most;
	most = overRow(most, Larger());
	if (threadIdx.x == 0) *out = (most + slots - 1) / slots;
}

// for s, i := range [sequences, choices] { kept[s,i] = e = index[s,i] if fewer than most of index[s,:i] are e, else -1-e }
KERNEL limit_i32(int* kept, const int* index, int sequences, int choices, int experts, int most) {
	awaitPrevious();
	for (int b = blockIdx.x; b < sequences * experts; b += gridDim.x) {
		const int e = b % experts;
		const i64 at = (i64)(b / experts) * choices;
		Scan scan = {0};
		for (int i0 = 0; i0 < choices; i0 += 256) {
			const int i = i0 + threadIdx.x;
			const bool hit = i < choices && index[at + i] == e;
			const int r = scan.rank(hit);
			if (hit) kept[at + i] = r < most ? e : -1 - e;
		}
	}
}

// for g, e := range [groups, experts] { n[g,e] = how many of index[g,:choices] are e }
template <class A> __device__ void tally(A* n, const int* index, int groups, int choices, int experts) {
	for (int b = blockIdx.x; b < groups * experts; b += gridDim.x) {
		const int* of = index + (i64)(b / experts) * choices;
		int count = 0;
		for (int i = threadIdx.x; i < choices; i += 256) count += of[i] == b % experts;
		count = overRow(count, Plus());
		if (threadIdx.x == 0) n[b] = count;
	}
}

template <int N, class T> __device__ void moveRow(T* y, const T* x, int width) {
	Acc<T> v[N];
	FOR_COLS(j, width, N) {
		read<N>(v, x == nullptr ? x : x + j);
		write<N>(y + j, v);
	}
}

// for p := range slots { y[p] = x[from[p]/choices], or 0 if from[p] < 0 }
template <class T> __device__ void dispatch(T* y, const T* x, const int* from, int slots, int width, int choices) {
	FOR_ROWS(p, slots) {
		const T* row = from[p] < 0 ? nullptr : x + (i64)(from[p] / choices) * width;
		if (aligned<T>(width, x, y))
			moveRow<packed<T>>(y + p * width, row, width);
		else
			moveRow<1>(y + p * width, row, width);
	}
}

template <int N, class T> __device__ void combineRow(T* y, const T* x, const int* slot, int width, int choices, int acc) {
	Acc<T> sum[N], v[N];
	FOR_COLS(j, width, N) {
		read<N>(sum, acc ? y + j : nullptr);
		for (int c = 0; c < choices; c++) {
			if (slot[c] < 0) continue;
			read<N>(v, x + (i64)slot[c] * width + j);
			for (int k = 0; k < N; k++) sum[k] += v[k];
		}
		write<N>(y + j, sum);
	}
}

// for i, c := range [tokens, choices] { y[i] += x[slot[i,c]] if slot[i,c] >= 0 }
// from 0 unless acc.
template <class T> __device__ void combine(T* y, const T* x, const int* slot, int tokens, int width, int choices, int acc) {
	FOR_ROWS(i, tokens) {
		if (aligned<T>(width, x, y))
			combineRow<packed<T>>(y + i * width, x, slot + i * choices, width, choices, acc);
		else
			combineRow<1>(y + i * width, x, slot + i * choices, width, choices, acc);
	}
}

// for p := range slots { y[p] = w[from[p]], or 0 if from[p] < 0 }
template <class T> __device__ void deal(T* y, const T* w, const int* from, i64 slots) {
	FOR_FLAT(p, slots, 1) y[p] = from[p] < 0 ? narrow<T>(0) : w[from[p]];
}

// for i := range choices { w[i] = y[slot[i]], or 0 if slot[i] < 0 unless acc, which leaves w[i] }
template <class T> __device__ void collect(T* w, const T* y, const int* slot, i64 choices, int acc) {
	FOR_FLAT(i, choices, 1) {
		if (slot[i] >= 0) w[i] = y[slot[i]];
		else if (!acc) w[i] = narrow<T>(0);
	}
}

// Geometry: slots and census have a block of 256 for each expert, limit for each expert of each sequence,
// tally for each expert of each group. The rows of dispatch are slots, those of combine are tokens
// (launch.go).
#define EXPERTS(T, t)                                                                                                              \
	KERNEL dispatch_##t(T* y, const T* x, const int* from, int slots, int width, int choices) { awaitPrevious(); dispatch<T>(y, x, from, slots, width, choices); } \
	KERNEL combine_##t(T* y, const T* x, const int* slot, int tokens, int width, int choices, int acc) {                                  \
		awaitPrevious(); \
		combine<T>(y, x, slot, tokens, width, choices, acc);                                                                              \
	}                                                                                                                                  \
	KERNEL deal_##t(T* y, const T* w, const int* from, i64 slots) { awaitPrevious(); deal<T>(y, w, from, slots); }                                        \
	KERNEL collect_##t(T* w, const T* y, const int* slot, i64 choices, int acc) { awaitPrevious(); collect<T>(w, y, slot, choices, acc); }
EACH_TYPE(EXPERTS)

#define TALLY(T, t) \
	KERNEL tally_##t(T* n, const int* index, int groups, int choices, int experts) { awaitPrevious(); tally<T>(n, index, groups, choices, experts); }
TALLY(float, f32)
TALLY(double, f64)
