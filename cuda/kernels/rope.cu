// Rotary position embedding. The host computes the cosines and sines, a row of turn/2 for each position,
// with any scaling of the frequencies. They are the same in every layer and step.
#include "base.cuh"

// turnHalves rotates pairs of elements that are turn/2 apart, of all heads of a token.
template <int N, class T> __device__ void turnHalves(T* y, const T* x, const Acc<T>* cos, const Acc<T>* sin, int heads, int dim, int from, int half, Acc<T> sign) {
	Acc<T> a[N], b[N], c[N], s[N], first[N], second[N];
	for (int u = threadIdx.x; u < heads * (half / N); u += blockDim.x) {
		const int j = u % (half / N) * N, at = u / (half / N) * dim + from + j;
		read<N>(a, x + at);
		read<N>(b, x + at + half);
		read<N>(c, cos + j);
		read<N>(s, sin + j);
		for (int k = 0; k < N; k++) {
			first[k] = a[k] * c[k] - b[k] * (sign * s[k]);
			second[k] = b[k] * c[k] + a[k] * (sign * s[k]);
		}
		write<N>(y + at, first);
		write<N>(y + at + half, second);
	}
}

// turnPairs rotates pairs of neighbours.
template <class T> __device__ void turnPairs(T* y, const T* x, const Acc<T>* cos, const Acc<T>* sin, int heads, int dim, int from, int half, Acc<T> sign) {
	for (int u = threadIdx.x; u < heads * half; u += blockDim.x) {
		const int j = u % half, at = u / half * dim + from + 2 * j;
		const Acc<T> a = wide(x[at]), b = wide(x[at + 1]), c = cos[j], s = sign * sin[j];
		y[at] = narrow<T>(a * c - b * s);
		y[at + 1] = narrow<T>(b * c + a * s);
	}
}

// copyBehind copies the elements of a row from one on, as words of type W.
template <class W, class T> __device__ void copyBehind(T* y, const T* x, int from, int ld) {
	constexpr int n = sizeof(W) / sizeof(T);
	for (int k = from + threadIdx.x * n; k < ld; k += blockDim.x * n) *(W*)(y + k) = *(const W*)(x + k);
}

// for i, h, j := range [rows, heads, turn/2] {
//	y[i,h,k] = x[i,h,k]*c - x[i,h,m]*d; y[i,h,m] = x[i,h,m]*c + x[i,h,k]*d
// }
// with c = cos[i%seq,j] and d = sin[i%seq,j], or -sin if inverse; k = from+j and m = k+turn/2 or, with
// pairs, k = from+2j and m = k+1. Other elements of the dim, and those of a row of ld elements behind its heads, are
// copied. y may be x.
template <class T>
__device__ void rope(T* y, const T* x, const Acc<T>* cos, const Acc<T>* sin, int rows, int seq, int ld, int heads, int dim, int from, int turn, int pairs, int inverse) {
	const int half = turn / 2, rest = dim - turn;
	const Acc<T> sign = inverse ? -1 : 1;
	const bool packs = aligned<T>(dim, x, y) && ld % packed<T> == 0 && aligned<T>(from, cos, sin) && half % packed<T> == 0;
	FOR_ROWS(i, rows) {
		const Acc<T> *c = cos + i % seq * half, *s = sin + i % seq * half;
		const T* xi = x + i * ld;
		T* yi = y + i * ld;
		if (pairs)
			turnPairs(yi, xi, c, s, heads, dim, from, half, sign);
		else if (packs)
			turnHalves<packed<T>>(yi, xi, c, s, heads, dim, from, half, sign);
		else
			turnHalves<1>(yi, xi, c, s, heads, dim, from, half, sign);
		for (int u = threadIdx.x; y != x && u < heads * rest; u += blockDim.x) {
			const int k = u % rest, at = u / rest * dim + (k < from ? k : k + turn);
			yi[at] = xi[at];
		}
		if (y == x)
			continue;
		if (packs)
			copyBehind<uint4>(yi, xi, heads * dim, ld);
		else
			copyBehind<T>(yi, xi, heads * dim, ld);
	}
}

// Geometry: rows of heads*dim elements (launch.go).
#define ROPE(T, t)                                                                                                              \
	KERNEL rope_##t(T* y, const T* x, const Acc<T>* cos, const Acc<T>* sin, int rows, int seq, int ld, int heads, int dim, int from, int turn, int pairs, int inverse) { \
		awaitPrevious(); \
		rope<T>(y, x, cos, sin, rows, seq, ld, heads, dim, from, turn, pairs, inverse);                                               \
	}
EACH_TYPE(ROPE)
