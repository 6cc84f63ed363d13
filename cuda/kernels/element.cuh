// Functions of one element, as in runtime/cpu (activation.go), for the kernels of fused groups.
#pragma once
#include "power.cuh"

__device__ inline float tanhOf(float x) { return tanhf(x); }
__device__ inline double tanhOf(double x) { return tanh(x); }
__device__ inline float erfcOf(float x) { return erfcf(x); }
__device__ inline double erfcOf(double x) { return erfc(x); }

// sigmoid is 1/(1+e^-x). In float it has a relative error of at most 2^-21 for x above -8: it takes five
// instructions, an exact quotient and exponential take 25.
__device__ inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }
__device__ inline float sigmoid(float x) { return inverseFast(1 + exp2Fast(x * -1.44269504088896340736f)); }
template <class A> __device__ inline A sigmoidGrad(A x) {
	const A s = sigmoid(x);
	return s * (1 - s);
}

// gelu is x/2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3), as x * sigmoid(2u).
template <class A> __device__ inline A geluShare(A x) { return sigmoid((A)(2 * 0.79788456080286535588) * (x + (A)0.044715 * x * x * x)); }
template <class A> __device__ inline A gelu(A x) { return x * geluShare(x); }
template <class A> __device__ inline A geluGrad(A x) {
	const A s = geluShare(x);
	return s + x * (s * (1 - s)) * ((A)(2 * 0.79788456080286535588) * (1 + (A)(3 * 0.044715) * x * x));
}

// geluErf is x * phi(x), with phi the distribution function of the normal distribution.
template <class A> __device__ inline A phi(A x) { return (A)0.5 * erfcOf(-x * (A)0.70710678118654752440); }
template <class A> __device__ inline A geluErf(A x) { return x * phi(x); }
template <class A> __device__ inline A geluErfGrad(A x) { return phi(x) + x * expOf((A)-0.5 * x * x) * (A)0.39894228040143267794; }

// silu is x * sigmoid(x).
template <class A> __device__ inline A silu(A x) { return x * sigmoid(x); }
template <class A> __device__ inline A siluGrad(A x) {
	const A s = sigmoid(x);
	return s + x * (s * (1 - s));
}

// relu is max(x, 0); NaN stays.
template <class A> __device__ inline A relu(A x) { return x < 0 ? (A)0 : x; }
template <class A> __device__ inline A reluGrad(A x) { return x > 0 ? (A)1 : (A)0; }

// softcap is cap * tanh(x/cap).
template <class A> __device__ inline A softcap(A x, A cap) { return cap * tanhOf(x * (1 / cap)); }
template <class A> __device__ inline A softcapGrad(A x, A cap) {
	const A t = tanhOf(x * (1 / cap));
	return 1 - t * t;
}
