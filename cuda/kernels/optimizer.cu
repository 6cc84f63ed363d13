// Parameter updates over flat shards. Values that change from step to step are read from device memory, so
// that a captured graph works. clip is the output of kernel clip, rates come from the host.
//
// P, G and M are the types of parameters, gradients and moments. The arithmetic is in float, or in double
// for double. If there is a master copy, it holds the parameter, and p becomes the rounded copy.
#include "base.cuh"

// Stochastic rounds to bf16 stochastically: up with a probability equal to the number's distance from the
// lower neighbour. The random bits are the first ones of number j of the key's stream, with j the element's
// number in the whole model, so that every plan rounds alike. A null key rounds to nearest. numbers are
// {from, first, digits, width, stride, width, stride, ...}: element i has the number first + sum of
// digit*stride over the digits of from+i in the mixed-radix system with these widths as bases, the first
// digit varying fastest (runtime.Numbers).
struct Stochastic {
	const i64 *key, *numbers;
	u64 next; // number of the next element
	i64 runs; // how many elements have consecutive numbers from there

	__device__ Stochastic(const i64* key, const i64* numbers) : key(key), numbers(numbers), next(0), runs(0) {}

	__device__ void find(u64 i) {
		i += numbers[0];
		next = numbers[1];
		runs = numbers[3] - i % numbers[3];
		for (int d = 0; d < numbers[2]; d++) {
			const u64 width = numbers[3 + 2 * d];
			next += i % width * numbers[4 + 2 * d];
			i /= width;
		}
	}

	// round rounds element i. Calls must be in order.
	template <class P> __device__ P round(Acc<P> x, i64 i) { return narrow<P>(x); }
};

template <> __device__ inline bf16 Stochastic::round<bf16>(float x, i64 i) {
	if (key == nullptr) return narrow<bf16>(x);
	if (runs == 0) find(i);
	runs--;
	const u32 bits = randomBits(*key, next++) >> 48;
	return x - x != 0 ? narrow<bf16>(x) : bf16{(unsigned short)((__float_as_uint(x) + bits) >> 16)};
}

template <class P, int N> __device__ void putParam(P* p, Acc<P>* master, const Acc<P> (&x)[N], Stochastic rounding, i64 i) {
	if (master != nullptr) write<N>(master + i, x);
	if (rounding.key == nullptr) {
		write<N>(p + i, x);
		return;
	}
	Acc<P> y[N];
	for (int k = 0; k < N; k++) y[k] = wide(rounding.round<P>(x[k], i + k));
	write<N>(p + i, y);
}

template <class A> struct AdamRates { A step, root, shrink, decay, b1, c1, b2, c2, eps; };

// for i := range p {
//	g' = clip*g + decay*p; m = b1*m + c1*g'; v = b2*v + c2*g'^2
//	p = shrink*p - step*m/(sqrt(v)*root + eps)
// }
// unless clip[2] is set, which skips the step. clip is clip[1]. rates are step = lr/(1-b1^t), root =
// 1/sqrt(1-b2^t), then shrink = 1-lr*wd and decay = 0 for AdamW, or 1 and wd for Adam, then b1, 1-b1, b2,
// 1-b2, eps.
template <class P, class G, class M>
__device__ void adam(P* p, Acc<P>* master, const G* g, M* m, M* v, const double* clip, const double* rates, const i64* key, const i64* numbers, i64 n) {
	typedef Acc<P> A;
	if (clip[2] != 0) return;
	const A scale = clip[1];
	const AdamRates<A> r = {(A)rates[0], (A)rates[1], (A)rates[2], (A)rates[3], (A)rates[4], (A)rates[5], (A)rates[6], (A)rates[7], (A)rates[8]};
	constexpr int most = packed<P> == 8 || packed<G> == 8 || packed<M> == 8 ? 8 : packed<P>;
	flat<most>(n, aligned<P>(packed<P>, p, (P*)master, (P*)g, (P*)m, (P*)v), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		A x[N], d[N], first[N], second[N];
		if (master == nullptr) read<N>(x, p + i);
		else read<N>(x, master + i);
		read<N>(d, g + i);
		read<N>(first, m + i);
		read<N>(second, v + i);
		for (int k = 0; k < N; k++) {
			const A e = d[k] * scale + r.decay * x[k];
			first[k] = r.b1 * first[k] + r.c1 * e;
			second[k] = r.b2 * second[k] + r.c2 * (e * e);
			x[k] = x[k] * r.shrink - r.step * first[k] / (rootOf(second[k]) * r.root + r.eps);
		}
		write<N>(m + i, first);
		write<N>(v + i, second);
		putParam<P, N>(p, master, x, Stochastic(key, numbers), i);
	});
}

// for i := range p { m = momentum*m + clip*g + wd*p; p -= lr*m }
// unless clip[2] is set. rates are lr, momentum, wd. m may be null if momentum is 0.
template <class P, class G, class M>
__device__ void sgd(P* p, Acc<P>* master, const G* g, M* m, const double* clip, const double* rates, const i64* key, const i64* numbers, i64 n) {
	typedef Acc<P> A;
	if (clip[2] != 0) return;
	const A scale = clip[1], lr = rates[0], momentum = rates[1], wd = rates[2];
	constexpr int most = packed<P> == 8 || packed<G> == 8 || packed<M> == 8 ? 8 : packed<P>;
	flat<most>(n, aligned<P>(packed<P>, p, (P*)master, (P*)g, (P*)m), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		A x[N], d[N], old[N];
		if (master == nullptr) read<N>(x, p + i);
		else read<N>(x, master + i);
		read<N>(d, g + i);
		read<N>(old, m == nullptr ? m : m + i);
		for (int k = 0; k < N; k++) {
			d[k] = momentum * old[k] + (d[k] * scale + wd * x[k]);
			x[k] -= lr * d[k];
		}
		if (m != nullptr) write<N>(m + i, d);
		putParam<P, N>(p, master, x, Stochastic(key, numbers), i);
	});
}

// for i := range bias { bias[i] += rate if got[i]*experts < choices, -= rate if > }
// unless clip[2] is set. The bias of the experts' scores moves toward an even share of all choices; got is
// the number of choices of each expert.
template <class P, class G, class M> __device__ void level(P* p, Acc<P>* master, const G* got, const double* clip, double rate, double experts, double choices, const i64* key, const i64* numbers, i64 n) {
	if (clip[2] != 0) return;
	flat<1>(n, false, [&](i64 i, auto) {
		const double load = (double)wide(got[i]) * experts;
		Acc<P> x[1] = {master == nullptr ? wide(p[i]) : master[i]};
		if (load > choices) x[0] -= (Acc<P>)rate;
		else if (load < choices) x[0] += (Acc<P>)rate;
		putParam<P, 1>(p, master, x, Stochastic(key, numbers), i);
	});
}

// Geometry: flat (launch.go).
#define UPDATE(P, G, M, p_, g_, m_)                                                                                                  \
	KERNEL adam_##p_##_##g_##_##m_(P* p, Acc<P>* master, const G* g, M* m, M* v, const double* clip, const double* rates, const i64* key, const i64* numbers, i64 n) { \
		awaitPrevious(); \
		adam<P, G, M>(p, master, g, m, v, clip, rates, key, numbers, n);                                                                                    \
	}                                                                                                                                              \
	KERNEL sgd_##p_##_##g_##_##m_(P* p, Acc<P>* master, const G* g, M* m, const double* clip, const double* rates, const i64* key, const i64* numbers, i64 n) {    \
		awaitPrevious(); \
		sgd<P, G, M>(p, master, g, m, clip, rates, key, numbers, n);                                                                                        \
	}                                                                                                                                              \
	KERNEL level_##p_##_##g_##_##m_(P* p, Acc<P>* master, const G* got, const double* clip, double rate, double experts, double choices, const i64* key, const i64* numbers, i64 n) {       \
		awaitPrevious(); \
		level<P, G, M>(p, master, got, clip, rate, experts, choices, key, numbers, n);                                                                               \
	}
UPDATE(double, double, double, f64, f64, f64)
#define UPDATES_OF(P, G, p, g) \
	UPDATE(P, G, float, p, g, f32) UPDATE(P, G, bf16, p, g, bf16) UPDATE(P, G, f16, p, g, f16)
EACH_COUPLE(UPDATES_OF)
