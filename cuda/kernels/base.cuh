// Shared by every kernel: element types, packs of 16 bytes, sums over the threads of a row and of a block.
//
// No header of the toolkit is included, so that NVRTC compiles the kernels without a toolkit. Under
// EMULATED, a C++ compiler compiles them, with emulate/emulate.h in front.
//
// Conventions: outputs come first, then inputs, then sizes. A d in front of a name is the gradient of the
// loss with respect to it. T is the storage type, A the compute type: float, or double for double. Sums
// have one fixed order, which depends only on sizes and on the launch's geometry.
#pragma once

typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };

template <class T> struct Computed { typedef float type; };
template <> struct Computed<double> { typedef double type; };
template <class T> using Acc = typename Computed<T>::type;

// EACH_TYPE(K) declares a kernel for each type: K(type, suffix of its name).
#define EACH_TYPE(K) K(float, f32) K(double, f64) K(bf16, bf16) K(f16, f16)
// EACH_COUPLE(K) declares a kernel for each pair of types that are computed in float: K(type, other type,
// suffix, other suffix).
#define EACH_COUPLE(K)                                                                            \
	K(float, float, f32, f32) K(float, bf16, f32, bf16) K(float, f16, f32, f16)                   \
	K(bf16, float, bf16, f32) K(bf16, bf16, bf16, bf16) K(bf16, f16, bf16, f16)                   \
	K(f16, float, f16, f32) K(f16, bf16, f16, bf16) K(f16, f16, f16, f16)
#define KERNEL extern "C" __global__ void
// KERNEL_128 declares a kernel with blocks of 128 threads, so that each thread gets the registers that it
// needs, KERNEL_256 and KERNEL_1024 one with blocks of up to 256 and 1,024.
#define KERNEL_128 extern "C" __global__ void __launch_bounds__(128)
#define KERNEL_256 extern "C" __global__ void __launch_bounds__(256)
#define KERNEL_1024 extern "C" __global__ void __launch_bounds__(1024)
// KERNEL_128_FITTING(n) is KERNEL_128 with as many registers as let n blocks fit on a multiprocessor. With n = 0, nvcc
// chooses the number.
#define KERNEL_128_FITTING(n) extern "C" __global__ void __launch_bounds__(128, n)

#ifndef EMULATED
// SHARED declares n elements of shared memory. They are not initialized.
#define SHARED(T, name, n) __shared__ T name[n]

__device__ inline float widenF16(unsigned short x) {
	float y;
	asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
	return y;
}

__device__ inline unsigned short narrowF16(float x) {
	unsigned short y;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
	return y;
}

__device__ inline unsigned short narrowBF16(float x) {
	unsigned short y;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
	return y;
}

// pairOfF16 and pairOfBF16 narrow two numbers to a word of 32 bits, low in its lower half.
__device__ inline u32 pairOfF16(float low, float high) {
	u32 y;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
	return y;
}

__device__ inline u32 pairOfBF16(float low, float high) {
	u32 y;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
	return y;
}

// exp2Fast returns 2^x with a relative error of at most 2^-22, and 0 for results below 2^-126.
__device__ inline float exp2Fast(float x) {
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

// inverseFast returns 1/x with an error of at most one unit in the last place, for normal numbers.
__device__ inline float inverseFast(float x) {
	float y;
	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
#endif

// wide converts a stored number to its compute type.
__device__ inline float wide(float x) { return x; }
__device__ inline double wide(double x) { return x; }
__device__ inline float wide(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ inline float wide(f16 x) { return widenF16(x.bits); }

// narrow rounds to the nearest, ties to even.
template <class T> __device__ inline T narrow(Acc<T> x) { return x; }
template <> __device__ inline bf16 narrow<bf16>(float x) { return bf16{narrowBF16(x)}; }
template <> __device__ inline f16 narrow<f16>(float x) { return f16{narrowF16(x)}; }

template <class T> struct alignas(16) Pack { T at[16 / sizeof(T)]; };

// Word converts the numbers of T in a word of 32 bits. There are count of them.
template <class T> struct Word;
template <> struct Word<float> {
	static constexpr int count = 1;
	static __device__ void get(float* v, u32 w) { v[0] = __uint_as_float(w); }
	static __device__ u32 put(const float* v) { return __float_as_uint(v[0]); }
};
template <> struct Word<bf16> {
	static constexpr int count = 2;
	static __device__ void get(float* v, u32 w) { v[0] = __uint_as_float(w << 16), v[1] = __uint_as_float(w & 0xffff0000u); }
	static __device__ u32 put(const float* v) { return pairOfBF16(v[0], v[1]); }
};
template <> struct Word<f16> {
	static constexpr int count = 2;
	static __device__ void get(float* v, u32 w) { v[0] = widenF16((unsigned short)w), v[1] = widenF16((unsigned short)(w >> 16)); }
	static __device__ u32 put(const float* v) { return pairOfF16(v[0], v[1]); }
};

// readPack and writePack access a pack as one vector: nvcc accesses a struct's fields one by one.
template <class T> __device__ inline void readPack(float* v, const T* p) {
	constexpr int n = Word<T>::count;
	const uint4 q = *(const uint4*)p;
	Word<T>::get(v, q.x), Word<T>::get(v + n, q.y), Word<T>::get(v + 2 * n, q.z), Word<T>::get(v + 3 * n, q.w);
}
__device__ inline void readPack(double* v, const double* p) {
	const double2 q = *(const double2*)p;
	v[0] = q.x, v[1] = q.y;
}
template <class T> __device__ inline void writePack(T* p, const float* v) {
	constexpr int n = Word<T>::count;
	*(uint4*)p = uint4{Word<T>::put(v), Word<T>::put(v + n), Word<T>::put(v + 2 * n), Word<T>::put(v + 3 * n)};
}
__device__ inline void writePack(double* p, const double* v) { *(double2*)p = double2{v[0], v[1]}; }

// packed is the number of elements of T in a pack of 16 bytes.
template <class T> constexpr int packed = 16 / sizeof(T);

// aligned reports whether all rows of cols elements from these addresses on start at multiples of 16 bytes.
template <class T, class... P> __device__ inline bool aligned(int cols, const P*... p) {
	return cols % packed<T> == 0 && ((... | (u64)p) & 15) == 0;
}

// read reads and widens N elements at p, which must be aligned unless N is 1. A null p reads zeros.
template <int N, class T> __device__ inline void read(Acc<T> (&v)[N], const T* p) {
	if (p == nullptr) {
		for (int k = 0; k < N; k++) v[k] = 0;
	} else if constexpr (N == 1) {
		v[0] = wide(*p);
	} else {
		static_assert(N % packed<T> == 0, "whole packs");
#pragma unroll
		for (int i = 0; i < N; i += packed<T>) readPack(v + i, p + i);
	}
}

// write narrows and writes N elements to p, which must be aligned unless N is 1.
template <int N, class T> __device__ inline void write(T* p, const Acc<T> (&v)[N]) {
	if constexpr (N == 1) {
		*p = narrow<T>(v[0]);
	} else {
#pragma unroll
		for (int i = 0; i < N; i += packed<T>) writePack(p + i, v + i);
	}
}

// rounded returns a number rounded to T.
template <class T> __device__ inline Acc<T> rounded(Acc<T> x) { return wide(narrow<T>(x)); }

struct Plus { template <class A> __device__ A operator()(A a, A b) const { return a + b; } };
struct Larger { template <class A> __device__ A operator()(A a, A b) const { return a != a || a > b ? a : b; } }; // NaN wins

// overRow reduces a value of each thread of a row; all threads get the result. The threads of a row share
// threadIdx.y. They are a warp, or whole warps, which are then the whole block.
template <class A, class F> __device__ inline A overRow(A v, F join) {
#pragma unroll
	for (int d = 16; d > 0; d >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, d));
	if (blockDim.x == 32) return v;
	SHARED(A, part, 32);
	__syncthreads(); // the values of the previous call have been read
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
	__syncthreads();
	v = part[0];
	for (int w = 1; w < blockDim.x / 32; w++) v = join(v, part[w]);
	return v;
}

// FOR_ROWS iterates over rows. A block has blockDim.y rows at a time, and all its threads iterate together.
#define FOR_ROWS(i, rows) for (i64 i = (i64)blockIdx.x * blockDim.y + threadIdx.y; i < (rows); i += (i64)gridDim.x * blockDim.y)
// FOR_COLS iterates over a thread's packs of N elements of a row.
#define FOR_COLS(j, cols, N) for (i64 j = threadIdx.x * (N); j < (cols); j += blockDim.x * (N))
// FOR_WIDE does so if blocks share a row: those with equal blockIdx.x and any blockIdx.y.
#define FOR_WIDE(j, cols, N) for (i64 j = ((i64)blockIdx.y * blockDim.x + threadIdx.x) * (N); j < (cols); j += (i64)gridDim.y * blockDim.x * (N))
// FOR_FLAT iterates over a thread's packs of N of n elements.
#define FOR_FLAT(i, n, N) for (i64 i = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * (N); i < (n); i += (i64)gridDim.x * blockDim.x * (N))

__device__ inline float rootOf(float x) { return sqrtf(x); }
__device__ inline double rootOf(double x) { return sqrt(x); }
__device__ inline float expOf(float x) { return expf(x); }
__device__ inline double expOf(double x) { return exp(x); }
__device__ inline float exp2Of(float x) { return exp2Fast(x); }
__device__ inline double exp2Of(double x) { return exp2(x); }
__device__ inline float fmaOf(float x, float y, float z) { return fmaf(x, y, z); }
__device__ inline double fmaOf(double x, double y, double z) { return fma(x, y, z); }
// maxOf and minOf ignore NaN.
__device__ inline float maxOf(float x, float y) { return fmaxf(x, y); }
__device__ inline double maxOf(double x, double y) { return fmax(x, y); }
__device__ inline float minOf(float x, float y) { return fminf(x, y); }
__device__ inline double minOf(double x, double y) { return fmin(x, y); }
__device__ inline float logOf(float x) { return logf(x); }
__device__ inline double logOf(double x) { return log(x); }

// here returns the row of an id among n rows from lo on, or -1.
__device__ inline int here(int id, int lo, int n) { return (u32)(id - lo) < (u32)n ? id - lo : -1; }

// Const passes a constant as a type, so that a lambda knows it at compile time.
template <int n> struct Const { static constexpr int value = n; };

// flat calls f(i, Const<N>()) for a thread's packs of N of n elements, and f(i, Const<1>()) for the
// remaining elements.
template <int N, class F> __device__ inline void flat(i64 n, bool packs, F f) {
	if (!packs) {
		FOR_FLAT(i, n, 1) f(i, Const<1>());
		return;
	}
	const i64 whole = n / N * N;
	FOR_FLAT(i, whole, N) f(i, Const<N>());
	FOR_FLAT(i, n - whole, 1) f(whole + i, Const<1>());
}

// The counter-based random number generator of runtime/rng, bit for bit.
__device__ inline u64 mixed(u64 z) {
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

// keyBegun starts a key from a seed, and keyed extends it by a number that identifies what is drawn.
__device__ inline u64 keyBegun(u64 seed) { return mixed(seed + 0x9E3779B97F4A7C15ull); }
__device__ inline u64 keyed(u64 key, u64 part) { return mixed((key << 23 | key >> 41) * 5 + mixed(part + 0x9E3779B97F4A7C15ull)); }

// RANDOM_STEP is the distance of the positions of consecutive numbers of a stream.
#define RANDOM_STEP 0x9E3779B97F4A7C15ull
// randomAt returns the number at a position of the key's stream. Number i is at key + RANDOM_STEP * (i + 1).
__device__ inline u64 randomAt(u64 key, u64 at) { return mixed(mixed(at) ^ (key << 32 | key >> 32)); }
// randomBits returns number i of the key's stream.
__device__ inline u64 randomBits(u64 key, u64 i) { return randomAt(key, key + RANDOM_STEP * (i + 1)); }
