// Numbers of a step: counters and facts of the rank, so that a captured graph needs nothing from the host.
#include "base.cuh"

// for i := range ids { ids[i] = min(where(i) + offset, most), without the limit if most is 0 }
// with where(i) = at+i or, from half on if half is not 0, then+i-half, like cpu.Where.
KERNEL iota_i32(int* ids, int at, int half, int then, int offset, int most, i64 n) {
	awaitPrevious();
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
	awaitPrevious();
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
	awaitPrevious();
	FOR_FLAT(i, n, 1) {
		u64 key = keyBegun(step[0]);
		key = keyed(key, step[1]);
		for (int k = 0; k < 3; k++) key = keyed(key, sites[i * 3 + k]);
		keys[i] = mixed(key ^ 5);
	}
}

// for i := range n { words[i] = offered[n+i] if skipped[0] is not 0, else offered[i] }; words[n] =
// retried[0]
// where retried is the previous step's flag. The second half of offered is for the case that the previous
// step was skipped, which the host does not know yet.
KERNEL choose_i32(u64* words, const u64* offered, const double* skipped, const u64* retried, int n) {
	awaitPrevious();
	FOR_FLAT(i, n, 1) words[i] = offered[*skipped != 0 ? n + i : i];
	if (blockIdx.x == 0 && threadIdx.x == 0) words[n] = *retried;
}

// flag = 1 if retried[0] is not 0 or any rounds[i] > most[i], else 0
KERNEL exceeds_i32(double* flag, const int* rounds, const int* most, const double* retried, int n) {
	awaitPrevious();
	int more = *retried != 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) more |= rounds[i] > most[i];
	more = overRow(more, Larger());
	if (threadIdx.x == 0) *flag = more;
}

// Geometry: one block; iota, drop_keys and choose are flat (launch.go).
#define STEP(T, t)                                                                                                     \
	KERNEL inv_count_##t(T* y, const double* scale, const double* over) { awaitPrevious(); invCount<T>(y, scale, over); }                \
	KERNEL add_scalar_##t(double* sum, const T* x) { awaitPrevious(); addScalar<T>(sum, x); }
EACH_TYPE(STEP)
