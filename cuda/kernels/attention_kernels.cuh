// Defines the kernels of attention on tensor cores. There is a file for each head dim, attention64.cu to attention128.cu,
// so that a program compiles only what it calls.
#pragma once
#include "attention_mma_forward.cuh"
#include "attention_mma_grad.cuh"

// fitting is the number of blocks of a forward kernel for KERNEL_128_FITTING. With heads of 96 and ALiBi, nvcc would
// choose 4 blocks, and registers would spill.
template <int D, int E> constexpr int fitting = D == 96 && E == slopes ? 3 : 0;

// ATTENTION defines the kernels of head dim D with extras E. A block computes a tile of 64*M queries, N keys at a time,
// and in the gradient 64 queries or keys. Geometry: a block of four warps for each tile (attention.go).
#define ATTENTION(D, M, N, E, ending, T, t) \
	KERNEL_128_FITTING((fitting<D, E>)) attention##D##ending##_##t(T* o, Acc<T>* lse, const T* q, const T* k, const T* v, Attend shape) { \
		attention<D, M, N, E>(o, lse, q, k, v, shape); \
	} \
	KERNEL_128 attention##D##_grad_q##ending##_##t(T* dq, const T* dout, const T* q, const T* k, const T* v, \
		const Acc<T>* lse, const Acc<T>* dot, Attend shape) { \
		attentionGradQ<D, N, E>(dq, dout, q, k, v, lse, dot, shape); \
	} \
	KERNEL_128 attention##D##_grad_kv##ending##_##t(T* dk, T* dv, const T* dout, const T* q, const T* k, const T* v, \
		const Acc<T>* lse, const Acc<T>* dot, Attend shape) { \
		attentionGradKV<D, N, E>(dk, dv, dout, q, k, v, lse, dot, shape); \
	}

// ATTENTION_IN defines the kernels of a type, with every sum of extras except soft caps with ALiBi, which no known model
// has: attention.cu computes that.
#define ATTENTION_IN(D, M, N, T, t) \
	ATTENTION(D, M, N, plain, , T, t) \
	ATTENTION(D, M, N, caps, _capped, T, t) \
	ATTENTION(D, M, N, slopes, _alibi, T, t) \
	ATTENTION(D, M, N, drops, _drop, T, t) \
	ATTENTION(D, M, N, caps | drops, _capped_drop, T, t) \
	ATTENTION(D, M, N, slopes | drops, _alibi_drop, T, t)

// ATTENTION_KERNELS defines the kernels of a head dim.
#define ATTENTION_KERNELS(D, M, N) ATTENTION_IN(D, M, N, bf16, bf16) ATTENTION_IN(D, M, N, f16, f16)
