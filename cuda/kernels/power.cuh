// Exponentials of a row, relative to a number such as its maximum, for the loss and for fused groups.
#pragma once
#include "base.cuh"

// Exponentials are powers of two: with b = base(m), exp(x-m) is power(x, b) * drift(m, b). That takes one
// fused multiplication per element. The drift comes from the rounding of b. It is the same for all x.
template <class A> __device__ inline A log2e() { return (A)1.44269504088896340736; }
template <class A> __device__ inline bool isFinite(A x) { return x - x == 0; }

// base returns 0 if m is -Inf, so that power(-Inf) is 0 and not NaN.
template <class A> __device__ inline A base(A m) { return m == -(A)__uint_as_float(0x7f800000u) ? (A)0 : -m * log2e<A>(); }
template <class A> __device__ inline A power(A x, A b) { return exp2Of(fmaOf(x, log2e<A>(), b)); }
template <class A> __device__ inline A drift(A m, A b) { return isFinite(b) ? exp2Of(-fmaOf(m, log2e<A>(), b)) : (A)1; }
