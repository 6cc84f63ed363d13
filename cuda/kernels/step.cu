// Numbers of a step: what is counted and what is a fact of the rank, so that a captured graph asks the host for nothing.
#include "base.cuh"

// for i := range ids { ids[i] = where(i) + offset, or most if that is more and most is not 0 }
// with where(i) = at+i or, from half on where that is not 0, then+i-half, as cpu.Where has it.
KERNEL iota_i32(int* ids, int at, int half, int then, int offset, int most, i64 n) {
	FOR_FLAT(i, n, 1) {
		const int id = (int)(half > 0 && i >= half ? then + i - half : at + i) + offset;
		ids[i] = most != 0 && id > most ? most : id;
	}
}

// y[0] = scale[0] / over[0]
template <class T> __device__ void invCount(T* y, const double* scale, const double* over) {
	if (threadIdx.x == 0) *y = narrow<T>((Acc<T>)(*scale / *over));
}

// sum[0] += x[0]
template <class T> __device__ void addScalar(double* sum, const T* x) {
	if (threadIdx.x == 0) *sum += wide(*x);
}

// pair[0] = sum of part; pair[1] = 1 if loss[0] is infinite or NaN, else 0
KERNEL norm_pair_f64(double* pair, const double* part, const double* loss, int n) {
	double sum = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) sum += part[i];
	sum = overRow(sum, Plus());
	if (threadIdx.x > 0) return;
	pair[0] = sum;
	pair[1] = *loss - *loss != 0;
}

// for i := range n { keys[i] = rng.Key(step[0], step[1], sites[i,0], sites[i,1], sites[i,2]) }
// with step the seed and the number of the step.
KERNEL drop_keys_i32(u64* keys, const int* sites, const u64* step, int n) {
	FOR_FLAT(i, n, 1) {
		u64 key = keyBegun(step[0]);
		key = keyed(key, step[1]);
		for (int k = 0; k < 3; k++) key = keyed(key, sites[i * 3 + k]);
		keys[i] = mixed(key ^ 5);
	}
}

// for i := range n { said[i] = offer[n+i] if skipped[0] is not 0, else offer[i] }; said[n] is the word of spoiled
// of the step before: what the host offers for the case that it was skipped, of which the host has not heard.
KERNEL choose_i32(u64* said, const u64* offer, const double* skipped, const u64* spoiled, int n) {
	FOR_FLAT(i, n, 1) said[i] = offer[*skipped != 0 ? n + i : i];
	if (blockIdx.x == 0 && threadIdx.x == 0) said[n] = *spoiled;
}

// flag = 1 if spoiled[0] is not 0 or any rounds[i] is more than most[i], else 0
KERNEL exceeds_i32(double* flag, const int* rounds, const int* most, const double* spoiled, int n) {
	int more = *spoiled != 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) more |= rounds[i] > most[i];
	more = overRow(more, Larger());
	if (threadIdx.x == 0) *flag = more;
}

// Geometry: one block, iota, drop_keys and choose flat (launch.go).
#define STEP(T, t)                                                                                                     \
	KERNEL inv_count_##t(T* y, const double* scale, const double* over) { invCount<T>(y, scale, over); }                \
	KERNEL add_scalar_##t(double* sum, const T* x) { addScalar<T>(sum, x); }
EACH_TYPE(STEP)
