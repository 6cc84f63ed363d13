// FP8 operands of GEMMs: a tensor's absolute maximum, and its numbers as codes of an FP8 format, scaled by
// a power of two. format is 0 for E4M3 and 1 for E5M2. The host reads none of this.
#include "base.cuh"

struct Format { int mantissa, bias, most; }; // most is the code of the largest number
__device__ inline Format formatOf(int format) { return format == 0 ? Format{3, 7, 0x7e} : Format{2, 15, 0x7b}; }

__device__ inline float powerOf(int e) { return __uint_as_float((u32)(127 + e) << 23); }

// exponentOf returns the exponent of the largest power of two that scales absmax into the format, like
// num.FP8Format.Scale.
__device__ inline int exponentOf(float most, Format f) {
	const u32 bits = __float_as_uint(most);
	if (most == 0 || most - most != 0) return 0;
	const int top = f.mantissa == 3 ? 8 : 15; // the largest numbers are 1.75 times 2^8 and 2^15
	const int e = top - ((int)(bits >> 23) - 127) - ((bits & 0x7fffff) > 0x600000);
	return max(-126, min(126, e));
}

// codeOf returns a number's code, rounded to nearest, ties to even. Infinity and NaN become NaN, like in
// num.FP8Format.Round.
__device__ inline u32 codeOf(float x, Format f) {
	const u32 sign = __float_as_uint(x) >> 24 & 0x80, bits = __float_as_uint(x) & 0x7fffffff;
	if (bits >= 0x7f800000) return sign | 0x7f;
	const int shift = 23 - f.mantissa;
	if (bits < (u32)(128 - f.bias) << 23) { // added to unit, the last bit has the value of the smallest number
		const float unit = powerOf(1 - f.bias - f.mantissa + 23);
		return sign | (__float_as_uint(__uint_as_float(bits) + unit) - __float_as_uint(unit));
	}
	const u32 near = bits + ((1u << (shift - 1)) - 1) + (bits >> shift & 1);
	return sign | min((near >> shift) - ((u32)(127 - f.bias) << f.mantissa), (u32)f.most);
}

// numberOf returns the number of a code.
__device__ inline float numberOf(u32 code, Format f) {
	const u32 sign = (code & 0x80) << 24, rest = code & 0x7f;
	if (rest == 0x7f) return __uint_as_float(0x7fc00000);
	if (rest >> f.mantissa == 0) return __uint_as_float(__float_as_uint((float)rest * powerOf(1 - f.bias - f.mantissa)) | sign);
	return __uint_as_float(sign | ((rest << (23 - f.mantissa)) + ((u32)(127 - f.bias) << 23)));
}

// for each block b { part[b] = max of |x[i]| over the block's elements, NaN if one is }
template <class T> __device__ void fp8Absmax(float* part, const T* x, i64 n) {
	float most = 0;
	flat<packed<T>>(n, aligned<T>(packed<T>, x), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		float v[N];
		read<N>(v, x + i);
		for (int k = 0; k < N; k++) most = Larger()(most, v[k] < 0 ? -v[k] : v[k]);
	});
	most = overRow(most, Larger());
	if (threadIdx.x == 0) part[blockIdx.x] = most;
}

// absmaxOf returns the maximum of the parts to all threads of a block.
__device__ inline float absmaxOf(const float* part, int parts) {
	float most = 0;
	for (int i = threadIdx.x; i < parts; i += blockDim.x) most = Larger()(most, part[i]);
	return overRow(most, Larger());
}

const int tile = 64;

// for g, i, j := range [groups, rows, width] { y[g,i,j] = code of x[g,i,j] * s, or of x[g,j,i] * s if
// transposed, and 0 for j >= cols }
// where s is the scale of the maximum of parts, and scale[0] = 1/s. width is a multiple of 16, the codes in
// one pack.
template <class T> __device__ void fp8Quantize(u32* y, const T* x, const float* part, float* scale, int parts, int groups, int rows, int cols, int width, int transposed, int format) {
	const Format f = formatOf(format);
	const int e = exponentOf(absmaxOf(part, parts), f);
	const float s = powerOf(e);
	if (blockIdx.x == 0 && threadIdx.x == 0) *scale = powerOf(-e);
	if (!transposed) {
		const bool packs = aligned<T>(cols, x);
		const int turns = width / 16;
		FOR_FLAT(i, (i64)groups * rows * turns, 1) {
			const int j = i % turns * 16;
			const T* from = x + i / turns * cols + j;
			float v[16];
			if (packs && j + 16 <= cols)
				read<16>(v, from);
			else
				for (int k = 0; k < 16; k++) v[k] = j + k < cols ? wide(from[k]) : 0;
			u32 q[4];
			for (int k = 0; k < 4; k++) q[k] = codeOf(v[4 * k] * s, f) | codeOf(v[4 * k + 1] * s, f) << 8 | codeOf(v[4 * k + 2] * s, f) << 16 | codeOf(v[4 * k + 3] * s, f) << 24;
			((uint4*)y)[i] = uint4{q[0], q[1], q[2], q[3]};
		}
		return;
	}
	// rows i of codes, padded by 4 so that those of a column are in different banks
	SHARED(u32, words, tile * (tile + 4) / 4);
	unsigned char* const codes = (unsigned char*)words;
	const int down = (rows + tile - 1) / tile, over = (width + tile - 1) / tile;
	const bool packs = aligned<T>(rows, x);
	for (i64 t = blockIdx.x; t < (i64)groups * down * over; t += gridDim.x) {
		const i64 g = t / ((i64)down * over);
		const int i0 = t / over % down * tile, j0 = t % over * tile;
		__syncthreads(); // the previous tile has been read
		for (int u = threadIdx.x; u < tile * tile / 8; u += blockDim.x) {
			const int j = u / (tile / 8), i = u % (tile / 8) * 8;
			const T* from = x + (g * cols + j0 + j) * rows + i0 + i;
			float v[8] = {};
			if (j0 + j < cols) {
				if (packs && i0 + i + 8 <= rows)
					read<8>(v, from);
				else
					for (int k = 0; k < 8; k++) v[k] = i0 + i + k < rows ? wide(from[k]) : 0;
			}
			for (int k = 0; k < 8; k++) codes[(i + k) * (tile + 4) + j] = (unsigned char)codeOf(v[k] * s, f);
		}
		__syncthreads(); // the tile is complete
		for (int u = threadIdx.x; u < tile * tile / 16; u += blockDim.x) {
			const int i = u / (tile / 16), j = u % (tile / 16) * 16;
			if (i0 + i >= rows || j0 + j >= width) continue;
			const u32* from = (const u32*)(codes + i * (tile + 4) + j);
			u32 q[4];
			for (int k = 0; k < 4; k++) q[k] = from[k];
			*(uint4*)((unsigned char*)y + (g * rows + i0 + i) * width + j0 + j) = uint4{q[0], q[1], q[2], q[3]};
		}
	}
}

// for i := range y { y[i] = number of the code of x[i] * s, / s }, with s as in fp8_quantize
template <class T> __device__ void fp8Round(T* y, const T* x, const float* part, int parts, i64 n, int format) {
	const Format f = formatOf(format);
	const int e = exponentOf(absmaxOf(part, parts), f);
	const float s = powerOf(e), back = powerOf(-e);
	flat<packed<T>>(n, aligned<T>(packed<T>, x, y), [&](i64 i, auto width) {
		constexpr int N = decltype(width)::value;
		float v[N];
		read<N>(v, x + i);
		for (int k = 0; k < N; k++) v[k] = numberOf(codeOf(v[k] * s, f), f) * back;
		write<N>(y + i, v);
	});
}

#define FP8(T, t)                                                                                                      \
	KERNEL fp8_absmax_##t(Acc<T>* part, const T* x, i64 n) { awaitPrevious(); fp8Absmax<T>(part, x, n); }                                 \
	KERNEL fp8_quantize_##t(u32* y, const T* x, const Acc<T>* part, Acc<T>* scale, int parts, int groups, int rows, int cols, int width, int transposed, int format) { awaitPrevious(); fp8Quantize<T>(y, x, part, scale, parts, groups, rows, cols, width, transposed, format); } \
	KERNEL fp8_round_##t(T* y, const T* x, const Acc<T>* part, int parts, i64 n, int format) { awaitPrevious(); fp8Round<T>(y, x, part, parts, n, format); }
FP8(bf16, bf16)
