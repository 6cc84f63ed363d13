// Attention on tensor cores of heads of 96, and its gradient.
#include "attention_kernels.cuh"

ATTENTION_KERNELS(96, 1, 32)
