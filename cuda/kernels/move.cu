// Copies of numbers: between types, into sums, between rows, and between the memories of ranks on one
// device; and dropout.
#include "base.cuh"

// for i := range y { y[i] = x[i], rounded, through float32 like num.Convert }
template <class U, class T> __device__ void cast(U* y, const T* x, i64 n) {
	constexpr int most = packed<T> > packed<U> ? packed<T> : packed<U>;
	flat<most>(n, aligned<T>(packed<T>, x, (const T*)y), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		Acc<T> v[N];
		Acc<U> w[N];
		read<N>(v, x + i);
		for (int k = 0; k < N; k++) w[k] = (Acc<U>)v[k];
		write<N>(y + i, w);
	});
}

// for i := range grad { grad[i] += x[i] }
template <class G, class T> __device__ void accumulate(G* grad, const T* x, i64 n) {
	constexpr int most = packed<T> > packed<G> ? packed<T> : packed<G>;
	flat<most>(n, aligned<T>(packed<T>, x, (const T*)grad), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		Acc<G> v[N];
		Acc<T> w[N];
		read<N>(v, grad + i);
		read<N>(w, x + i);
		for (int k = 0; k < N; k++) v[k] += w[k];
		write<N>(grad + i, v);
	});
}

// copyRow copies a row without conversion.
template <class T> __device__ void copyRow(T* y, const T* x, int cols) {
	if (aligned<T>(packed<T>, x, y)) {
		const int end = cols / packed<T> * packed<T>;
		for (int j = threadIdx.x * packed<T>; j < end; j += blockDim.x * packed<T>) *(uint4*)(y + j) = *(const uint4*)(x + j);
		for (int j = end + threadIdx.x; j < cols; j += blockDim.x) y[j] = x[j];
		return;
	}
	FOR_COLS(j, cols, 1) y[j] = x[j];
}

// for i, k := range [outer, times] { y[i,k] = a[i,k], of width elements, followed by b[i], of more }
template <class T> __device__ void join(T* y, const T* a, const T* b, int outer, int times, int width, int more) {
	FOR_ROWS(i, (i64)outer * times) {
		T* to = y + i * (width + more);
		copyRow(to, a + i * width, width);
		copyRow(to + width, b + i / times * more, more);
	}
}

// for i, j := range [rows, cols] { y[i,j] = x[i,at+j] } of x [rows, n]
template <class T> __device__ void part(T* y, const T* x, int rows, int cols, int n, int at) {
	FOR_ROWS(i, rows) copyRow(y + i * cols, x + i * n + at, cols);
}

// pieces calls f(own, at, width) for the pieces of columns [lo, hi) of concatenated parts that are
// contiguous in the dim's own order: own is the position in that order, at the position among the parts.
// zigzag is 0, or the n of comm.AllGatherZigzag.
template <class F> __device__ void pieces(int lo, int hi, int total, int zigzag, F f) {
	const int chunk = zigzag > 0 ? total / (2 * zigzag) : total;
	while (lo < hi) {
		const int k = lo / chunk, end = min(hi, (k + 1) * chunk);
		f((k % 2 == 0 ? k / 2 : 2 * zigzag - 1 - k / 2) * chunk + lo - k * chunk, lo, end - lo);
		lo = end;
	}
}

// for i, o := range [members, outer] { for j := range inner { if i*inner+j < total { y[o, own(i*inner+j)] =
// x[i,o,j] } } }
// with own(c) = c or, in the zigzag order of n = zigzag parts, the position of its column c in the dim's
// own order.
template <class T> __device__ void gather(T* y, const T* x, int outer, int members, int inner, int total, int zigzag) {
	FOR_ROWS(i, (i64)members * outer) {
		const int lo = i / outer * inner;
		T* to = y + i % outer * total;
		const T* from = x + i * inner;
		pieces(lo, min(lo + inner, total), total, zigzag, [&](int own, int at, int width) { copyRow(to + own, from + at - lo, width); });
	}
}

// for i, o := range [count, outer] { for j := range inner { y[i,o,j] = x[o, own((first+i)*inner+j)] } }
// for x [outer, total], with own as in gather: parts from number first on.
template <class T> __device__ void scatter(T* y, const T* x, int outer, int first, int count, int inner, int total, int zigzag) {
	FOR_ROWS(i, (i64)count * outer) {
		const int lo = (first + i / outer) * inner;
		T* to = y + i * inner;
		const T* from = x + i % outer * total;
		pieces(lo, lo + inner, total, zigzag, [&](int own, int at, int width) { copyRow(to + at - lo, from + own, width); });
	}
}

// for i := range y { y[i] = value }
template <class T> __device__ void fill(T* y, double value, i64 n) {
	flat<packed<T>>(n, aligned<T>(packed<T>, y), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		Acc<T> v[N];
		for (int k = 0; k < N; k++) v[k] = (Acc<T>)value;
		write<N>(y + i, v);
	});
}

// for i := range x { x[i] = x[i] rounded to R }
template <class R> __device__ void roundAs(float* x, i64 n) {
	flat<4>(n, aligned<float>(4, x), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		float v[N];
		read<N>(v, x + i);
		for (int k = 0; k < N; k++) v[k] = rounded<R>(v[k]);
		write<N>(x + i, v);
	});
}

// joinAt returns the members' elements j, reduced in the members' order.
template <class T, class F> __device__ Acc<T> joinAt(const T* const* members, int count, i64 j, F op) {
	Acc<T> v = wide(members[0][j]);
	for (int i = 1; i < count; i++) v = op(v, wide(members[i][j]));
	return v;
}

// for lo <= j < hi { all members' [j] = op(members[0][j], members[1][j], ...) }
template <class T, class F> __device__ void allReduce(T* const* members, int count, i64 lo, i64 hi, F op) {
	bool packs = true;
	for (int i = 0; i < count; i++) packs &= aligned<T>(packed<T>, members[i] + lo);
	flat<packed<T>>(hi - lo, packs, [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		Acc<T> v[N], w[N];
		read<N>(v, members[0] + lo + i);
		for (int m = 1; m < count; m++) {
			read<N>(w, members[m] + lo + i);
			for (int k = 0; k < N; k++) v[k] = op(v[k], w[k]);
		}
		for (int m = 0; m < count; m++) write<N>(members[m] + lo + i, v);
	});
}

// for lo <= j < hi { all members' [j] = log sum_i exp(members[i][j]) }
template <class T> __device__ void allReduceLSE(T* const* members, int count, i64 lo, i64 hi) {
	flat<1>(hi - lo, false, [&](i64 i, auto) {
		const i64 j = lo + i;
		double v = joinAt<T>(members, count, j, Larger()), sum = 0;
		if (v - v == 0) {
			for (int m = 0; m < count; m++) sum += exp((double)members[m][j] - v);
			v += log(sum);
		}
		for (int m = 0; m < count; m++) members[m][j] = (T)v;
	});
}

// for i, j := range [rows, cols] { y[i,j] = members[0][i,at+j] + members[1][i,at+j] + ... }
// for members [rows, total].
template <class T> __device__ void reduceScatter(T* y, const T* const* members, int count, int rows, int cols, int total, int at) {
	FOR_ROWS(i, rows) FOR_COLS(j, cols, 1)
		y[i * cols + j] = narrow<T>(joinAt<T>(members, count, i * total + at + j, Plus()));
}

// globalRow returns the global index of a local row's first element. view has the number of dims, then for
// up to four of them the local and global sizes, offset, half and then, like cpu.GlobalView.
__device__ inline u64 globalRow(const int* view, i64 i) {
	const int last = view[0] - 1, *local = view + 1, *global = view + 5, *offset = view + 9, *half = view + 13, *then = view + 17;
	i64 at = offset[last], step = global[last];
	for (int d = last - 1; d >= 0; d--) {
		const i64 k = i % local[d];
		at += (half[d] > 0 && k >= half[d] ? then[d] + k - half[d] : offset[d] + k) * step;
		i /= local[d];
		step *= global[d];
	}
	return at;
}

template <int N, class T> __device__ void dropoutRow(T* y, const T* x, u64 at, u64 key, u64 least, Acc<T> scale, int cols) {
	Acc<T> v[N];
	FOR_COLS(j, cols, N) {
		read<N>(v, x + j);
		for (int k = 0; k < N; k++) v[k] = randomBits(key, at + j + k) >> 11 >= least ? v[k] * scale : 0;
		write<N>(y + j, v);
	}
}

// for i, j := range [rows, cols] { y[i,j] = x[i,j]*scale if the upper 53 bits of number (global index of i,j) of key[0]'s stream are at least least, else 0 }
template <class T> __device__ void dropout(T* y, const T* x, const int* view, const u64* key, u64 least, double scale, int rows, int cols) {
	FOR_ROWS(i, rows) {
		const u64 at = globalRow(view, i);
		if (aligned<T>(cols, x, y))
			dropoutRow<packed<T>>(y + i * cols, x + i * cols, at, *key, least, scale, cols);
		else
			dropoutRow<1>(y + i * cols, x + i * cols, at, *key, least, scale, cols);
	}
}

// Geometry: rows of join are outer*times; flat of all_reduce has hi-lo elements (launch.go).
#define MOVE(T, t)                                                                                                                 \
	KERNEL join_##t(T* y, const T* a, const T* b, int outer, int times, int width, int more) { awaitPrevious(); join<T>(y, a, b, outer, times, width, more); } \
	KERNEL part_##t(T* y, const T* x, int rows, int cols, int n, int at) { awaitPrevious(); part<T>(y, x, rows, cols, n, at); }                             \
	KERNEL all_reduce_sum_##t(T* const* members, int count, i64 lo, i64 hi) { awaitPrevious(); allReduce<T>(members, count, lo, hi, Plus()); }              \
	KERNEL all_reduce_max_##t(T* const* members, int count, i64 lo, i64 hi) { awaitPrevious(); allReduce<T>(members, count, lo, hi, Larger()); }            \
	KERNEL reduce_scatter_sum_##t(T* y, const T* const* members, int count, int rows, int cols, int total, int at) {                       \
		awaitPrevious(); \
		reduceScatter<T>(y, members, count, rows, cols, total, at);                                                                        \
	}                                                                                                                                  \
	KERNEL dropout_##t(T* y, const T* x, const int* view, const u64* key, u64 least, double scale, int rows, int cols) {                   \
		awaitPrevious(); \
		dropout<T>(y, x, view, key, least, scale, rows, cols);                                                                             \
	}
EACH_TYPE(MOVE)

// Geometry: members*outer rows of inner elements; fill and round_as are flat. Numbers, including ids, are
// copied without conversion.
#define PARTS(T, t)                                                                                                                \
	KERNEL gather_##t(T* y, const T* x, int outer, int members, int inner, int total, int zigzag) {                                \
		awaitPrevious(); \
		gather<T>(y, x, outer, members, inner, total, zigzag);                                                                     \
	}                                                                                                                              \
	KERNEL scatter_##t(T* y, const T* x, int outer, int first, int count, int inner, int total, int zigzag) {                      \
		awaitPrevious(); \
		scatter<T>(y, x, outer, first, count, inner, total, zigzag);                                                               \
	}
EACH_TYPE(PARTS)
PARTS(int, i32)

#define FILL(T, t) \
	KERNEL fill_##t(T* y, double value, i64 n) { awaitPrevious(); fill<T>(y, value, n); }
EACH_TYPE(FILL)

#define ROUND_AS(R, t, r) \
	KERNEL round_as_##t##_##r(float* x, i64 n) { awaitPrevious(); roundAs<R>(x, n); }
ROUND_AS(bf16, f32, bf16)
ROUND_AS(f16, f32, f16)

#define LSE(T, t) \
	KERNEL all_reduce_lse_##t(T* const* members, int count, i64 lo, i64 hi) { awaitPrevious(); allReduceLSE<T>(members, count, lo, hi); }
LSE(float, f32)
LSE(double, f64)

#define CAST(U, T, u, t) \
	KERNEL cast_##u##_##t(U* y, const T* x, i64 n) { awaitPrevious(); cast<U, T>(y, x, n); }
CAST(float, double, f32, f64)
CAST(float, bf16, f32, bf16)
CAST(float, f16, f32, f16)
CAST(double, float, f64, f32)
CAST(double, bf16, f64, bf16)
CAST(double, f16, f64, f16)
CAST(bf16, float, bf16, f32)
CAST(bf16, double, bf16, f64)
CAST(bf16, f16, bf16, f16)
CAST(f16, float, f16, f32)
CAST(f16, double, f16, f64)
CAST(f16, bf16, f16, bf16)

#define ACCUMULATE(G, T, g, t) \
	KERNEL accumulate_##g##_##t(G* grad, const T* x, i64 n) { awaitPrevious(); accumulate<G, T>(grad, x, n); }
ACCUMULATE(double, double, f64, f64)
EACH_COUPLE(ACCUMULATE)
