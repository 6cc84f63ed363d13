// The router of experts: the experts of a token and their weights, the balance loss, and the gradients. A
// warp has a token. Its scores are in shared memory as double, so that the choice equals the CPU's:
// different rounding would move tokens to other experts.
#include "base.cuh"

constexpr int mostExperts = 512;

__device__ inline double warpSum(double v) {
	for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
	return v;
}
__device__ inline double warpMost(double v) {
	for (int d = 16; d > 0; d >>= 1) v = Larger()(v, __shfl_xor_sync(0xffffffffu, v, d));
	return v;
}

__device__ inline double lowestOf() { return -(double)__uint_as_float(0x7f800000u); }

// scores writes the router's scores to p, sigmoids or the softmax, and returns their sum.
template <class T> __device__ double scores(double* p, const T* x, int experts, int sigmoid) {
	double most = lowestOf(), sum = 0;
	for (int e = threadIdx.x; e < experts; e += 32) most = Larger()(most, (double)wide(x[e]));
	most = warpMost(most);
	for (int e = threadIdx.x; e < experts; e += 32) {
		const double v = wide(x[e]);
		p[e] = sigmoid ? 1 / (1 + exp(-v)) : exp(v - most);
		sum += p[e];
	}
	sum = warpSum(sum);
	if (!sigmoid)
		for (int e = threadIdx.x; e < experts; e += 32) p[e] /= sum;
	__syncwarp();
	return sigmoid ? sum : 1;
}

// first returns the smallest index of the maximum of n numbers.
__device__ inline int first(const double* v, int n) {
	double most = lowestOf();
	int at = n;
	for (int e = threadIdx.x; e < n; e += 32)
		if (at == n || v[e] > most) most = v[e], at = e;
	for (int d = 16; d > 0; d >>= 1) {
		const double other = __shfl_xor_sync(0xffffffffu, most, d);
		const int there = __shfl_xor_sync(0xffffffffu, at, d);
		if (there < n && (at == n || other > most || (other == most && there < at))) most = other, at = there;
	}
	return at;
}

// bestGroups keeps in order only the experts of the best groups of equal size. The score of a group is its
// best expert's or, with sigmoids, the sum of its best two.
__device__ inline void bestGroups(double* order, double* good, int experts, int groups, int best, int sigmoid) {
	const int width = experts / groups;
	for (int g = threadIdx.x; g < groups; g += 32) {
		double one = lowestOf(), two = lowestOf();
		for (int k = 0; k < width; k++) {
			const double v = order[g * width + k];
			if (v > one) two = one, one = v;
			else if (v > two) two = v;
		}
		good[g] = sigmoid ? one + two : one;
	}
	__syncwarp();
	u64 kept[mostExperts / 64] = {};
	for (int b = 0; b < best; b++) {
		const int g = first(good, groups);
		__syncwarp();
		kept[g / 64] |= 1ull << g % 64;
		if (threadIdx.x == 0) good[g] = lowestOf();
		__syncwarp();
	}
	for (int e = threadIdx.x; e < experts; e += 32)
		if (!(kept[e / width / 64] >> e / width % 64 & 1)) order[e] = lowestOf();
	__syncwarp();
}

// for i := range rows {
//	p = softmax(x[i]), or sigmoid of each
//	index[i] = choices experts of the largest p + bias in the best groups, in descending order
//	w[i,c] = scale * p[index[i,c]] (/ (eps + sum_c p[index[i,c]]) if share)
// }
// bias may be null. experts is at most 512.
template <class T>
__device__ void route(T* w, int* index, const T* x, const T* bias, int rows, int experts, int choices, int sigmoid, int share, double scale, double eps, int groups, int best) {
	SHARED(double, allP, 2 * mostExperts);
	SHARED(double, allOrder, 2 * mostExperts);
	SHARED(double, allGood, 2 * mostExperts);
	double *p = allP + threadIdx.y * mostExperts, *order = allOrder + threadIdx.y * mostExperts, *good = allGood + threadIdx.y * mostExperts;
	FOR_ROWS(i, rows) {
		scores(p, x + i * experts, experts, sigmoid);
		for (int e = threadIdx.x; e < experts; e += 32) order[e] = p[e] + (bias == nullptr ? 0 : (double)wide(bias[e]));
		__syncwarp();
		if (groups > 1) bestGroups(order, good, experts, groups, best, sigmoid);
		double sum = eps;
		for (int c = 0; c < choices; c++) {
			const int e = first(order, experts);
			__syncwarp();
			sum += p[e];
			if (threadIdx.x == 0) {
				index[i * choices + c] = e;
				order[e] = lowestOf();
			}
			__syncwarp();
		}
		for (int c = threadIdx.x; c < choices; c += 32) {
			const double y = scale * p[index[i * choices + c]];
			w[i * choices + c] = narrow<T>((Acc<T>)(share ? y / sum : y));
		}
		__syncwarp();
	}
}

// for i, e := range [rows, experts] { dx[i,e] = sum_c dw[i,c] * the derivative of w[i,c] by x[i,e] }
// for the same choices.
template <class T>
__device__ void routeGrad(T* dx, const T* dw, const T* x, const T* w, const int* index, int rows, int experts, int choices, int sigmoid, int share, double scale, double eps) {
	SHARED(double, allP, 2 * mostExperts);
	SHARED(double, allDS, 2 * mostExperts);
	double *p = allP + threadIdx.y * mostExperts, *ds = allDS + threadIdx.y * mostExperts;
	FOR_ROWS(i, rows) {
		const int* chosen = index + i * choices;
		scores(p, x + i * experts, experts, sigmoid);
		for (int e = threadIdx.x; e < experts; e += 32) ds[e] = 0;
		__syncwarp();
		double sum = eps, dot = 0, mean = 0;
		for (int c = 0; c < choices; c++) {
			sum += p[chosen[c]];
			dot += (double)wide(dw[i * choices + c]) * wide(w[i * choices + c]);
		}
		for (int c = 0; c < choices; c++) {
			const double d = scale * wide(dw[i * choices + c]), s = share ? (d - dot) / sum : d;
			if (threadIdx.x == 0) ds[chosen[c]] = s;
			mean += s * p[chosen[c]];
		}
		__syncwarp();
		for (int e = threadIdx.x; e < experts; e += 32)
			dx[i * experts + e] = narrow<T>((Acc<T>)(sigmoid ? ds[e] * p[e] * (1 - p[e]) : p[e] * (ds[e] - mean)));
		__syncwarp();
	}
}

// meanOf returns the mean of n, weighted by the scores p with the given sum.
template <class A> __device__ double meanOf(const double* p, double sum, const A* n, int experts) {
	double mean = 0;
	for (int e = threadIdx.x; e < experts; e += 32) mean += p[e] * n[e];
	return warpSum(mean) / sum;
}

// for g, i := range [groups, tokens] { y[g*tokens+i] = scale * sum_e p[i,e] * n[g,e] }
// with p[i] the softmax(x[i]), or the sigmoids of x[i] divided by their sum. sum_cols then sums a group's
// tokens.
template <class T> __device__ void balance(Acc<T>* y, const T* x, const Acc<T>* n, int groups, int tokens, int experts, int sigmoid, double scale) {
	SHARED(double, allP, 2 * mostExperts);
	double* p = allP + threadIdx.y * mostExperts;
	FOR_ROWS(i, (i64)groups * tokens) {
		const double sum = scores(p, x + i * experts, experts, sigmoid);
		const double mean = meanOf(p, sum, n + i / tokens * experts, experts);
		if (threadIdx.x == 0) y[i] = (Acc<T>)(scale * mean);
		__syncwarp();
	}
}

// for i, e := range [groups*tokens, experts] { dx[i,e] = dy[g] * p[i,e] * scale * (n[g,e] - sum_f
// p[i,f]*n[g,f]) (* (1-sigmoid(x[i,e])) for sigmoids) }
// with g the group of i and p as in balance.
template <class T> __device__ void balanceGrad(T* dx, const Acc<T>* dy, const T* x, const Acc<T>* n, int groups, int tokens, int experts, int sigmoid, double scale) {
	SHARED(double, allP, 2 * mostExperts);
	double* p = allP + threadIdx.y * mostExperts;
	FOR_ROWS(i, (i64)groups * tokens) {
		const Acc<T>* of = n + i / tokens * experts;
		const double sum = scores(p, x + i * experts, experts, sigmoid), mean = meanOf(p, sum, of, experts), factor = scale * dy[i / tokens];
		for (int e = threadIdx.x; e < experts; e += 32) {
			const double d = factor * (p[e] / sum) * (of[e] - mean);
			dx[i * experts + e] = narrow<T>((Acc<T>)(sigmoid ? d * (1 - p[e]) : d));
		}
		__syncwarp();
	}
}

// Geometry: a warp per row, two warps per block (launch.go).
#define ROUTE(T, t)                                                                                                                        \
	KERNEL route_##t(T* w, int* index, const T* x, const T* bias, int rows, int experts, int choices, int sigmoid, int share, double scale, double eps, int groups, int best) { \
		awaitPrevious(); \
		route<T>(w, index, x, bias, rows, experts, choices, sigmoid, share, scale, eps, groups, best);                                         \
	}                                                                                                                                      \
	KERNEL route_grad_##t(T* dx, const T* dw, const T* x, const T* w, const int* index, int rows, int experts, int choices, int sigmoid, int share, double scale, double eps) { \
		awaitPrevious(); \
		routeGrad<T>(dx, dw, x, w, index, rows, experts, choices, sigmoid, share, scale, eps);                                                 \
	}                                                                                                                                      \
	KERNEL balance_##t(Acc<T>* y, const T* x, const Acc<T>* n, int groups, int tokens, int experts, int sigmoid, double scale) {               \
		awaitPrevious(); \
		balance<T>(y, x, n, groups, tokens, experts, sigmoid, scale);                                                                          \
	}                                                                                                                                      \
	KERNEL balance_grad_##t(T* dx, const Acc<T>* dy, const T* x, const Acc<T>* n, int groups, int tokens, int experts, int sigmoid, double scale) { \
		awaitPrevious(); \
		balanceGrad<T>(dx, dy, x, n, groups, tokens, experts, sigmoid, scale);                                                                 \
	}
EACH_TYPE(ROUTE)
